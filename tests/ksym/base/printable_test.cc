// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/printable.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace ksym {
namespace {

std::string Printable(std::string_view name) {
  std::string out = ">";
  AppendPrintable(name, out);
  return out.substr(1);
}

// Text stays as it is, in any script.
TEST(PrintableTest, KeepsText) {
  EXPECT_EQ(Printable(""), "");
  EXPECT_EQ(Printable(" ~std::f<int>(char)"), " ~std::f<int>(char)");
  EXPECT_EQ(Printable("\u00e4\u20ac\U0001f600"), "\u00e4\u20ac\U0001f600");
}

// What a terminal obeys is replaced, from the first to the last of each kind.
TEST(PrintableTest, ReplacesControls) {
  EXPECT_EQ(Printable(std::string_view("\0a\x1f\x7f\n", 5)), "?a???");
  EXPECT_EQ(Printable("\u0080\u009f\u00a0"), "????\u00a0");
  EXPECT_EQ(Printable("\u2027\u2028\u2029\u202a\u202e\u202f"),
            "\u2027????????????\u202f");
  EXPECT_EQ(Printable("\u2065\u2066\u2069\u206a"), "\u2065??????\u206a");
}

// Bytes that are no UTF-8 are replaced: cut off, overlong, surrogates, beyond
// the last character.
TEST(PrintableTest, ReplacesInvalidText) {
  EXPECT_EQ(Printable("\xff\x80"), "??");
  EXPECT_EQ(Printable("\xe2\x82"), "??");
  EXPECT_EQ(Printable("\xc1\xbf\xe0\x9f\xbf"), "?????");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "???");
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "????");
  EXPECT_EQ(Printable("\xf4\x8f\xbf\xbf"), "\xf4\x8f\xbf\xbf");
}

// Every byte is told from text at every place of a longer name, as it is alone.
TEST(PrintableTest, AnyByteAnywhere) {
  for (int value = 0; value < 256; ++value) {
    const std::string byte(1, static_cast<char>(value));
    for (size_t place = 0; place < 20; ++place) {
      const std::string before(place, 'a');
      const std::string after(20 - place, '~');
      ASSERT_EQ(Printable(before + byte + after),
                before + Printable(byte) + after)
          << value << " at " << place;
      ASSERT_EQ(IsPrintableAscii(before + byte + after),
                value >= 0x20 && value < 0x7f);
    }
  }
}

}  // namespace
}  // namespace ksym
