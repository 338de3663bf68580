// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/safe_name.h"

#include <gtest/gtest.h>

#include <string>

#include "ksym/base/printable.h"

namespace profd {
namespace {

std::string Printable(std::string_view name) {
  std::string out;
  ksym::AppendPrintable(name, out);
  return out;
}

std::string FoldedName(std::string_view name) {
  std::string out = "before 1 ";
  AppendFoldedName(name, out);
  return out.substr(9);
}

std::string JsonText(std::string_view name) {
  std::string out;
  AppendJsonText(name, out);
  return out;
}

// Ordinary names, also those of C++ and of other scripts, stay as they are.
TEST(SafeNameTest, KeepsOrdinaryNames) {
  for (const std::string_view name :
       {"main", "operator new(unsigned long)", "std::vector<int, A>::at",
        "f(\"x\\y\")", "größe", "日本", "\U0001f600", "~Foo [clone .cold]"}) {
    EXPECT_EQ(Printable(name), name);
    EXPECT_EQ(FoldedName(name), name);
  }
  EXPECT_EQ(Printable(""), "");
}

// Whatever ends a line or commands a terminal is replaced, at the boundaries
// of each range too.
TEST(SafeNameTest, ReplacesControls) {
  EXPECT_EQ(Printable(std::string_view("\0a\n\r\t\x1f ~", 8)), "?a???? ~");
  EXPECT_EQ(Printable("\x1b[31mred\x7f"), "?[31mred?");
  EXPECT_EQ(Printable("\u0080\u009f\u00a0"), "????\u00a0");
  EXPECT_EQ(Printable("\u2027\u2028\u2029\u2030"), "\u2027??????\u2030");
  EXPECT_EQ(Printable("\u202a\u202e\u202f"), "??????\u202f");
  EXPECT_EQ(Printable("\u2065\u2066\u2069\u206a"), "\u2065??????\u206a");
}

// Bytes that are not UTF-8 are replaced one by one, and what follows them is
// kept: overlong forms, surrogates, too large values, cut characters.
TEST(SafeNameTest, ReplacesInvalidUtf8) {
  EXPECT_EQ(Printable("\xff\xfe"
                      "a"),
            "??a");
  EXPECT_EQ(Printable("\x80"), "?");
  EXPECT_EQ(Printable("\xc0\xaf"), "??");
  EXPECT_EQ(Printable("\xc1\xbf"), "??");
  EXPECT_EQ(Printable("\xc2\xa0"), "\xc2\xa0");
  EXPECT_EQ(Printable("\xe0\x9f\xbf"), "???");
  EXPECT_EQ(Printable("\xe0\xa0\x80"), "\xe0\xa0\x80");
  EXPECT_EQ(Printable("\xed\x9f\xbf"), "\xed\x9f\xbf");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "???");
  EXPECT_EQ(Printable("\xf0\x8f\xbf\xbf"), "????");
  EXPECT_EQ(Printable("\xf0\x90\x80\x80"), "\xf0\x90\x80\x80");
  EXPECT_EQ(Printable("\xf4\x8f\xbf\xbf"), "\xf4\x8f\xbf\xbf");
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "????");
  EXPECT_EQ(Printable("\xf5\x80\x80\x80"), "????");
  EXPECT_EQ(Printable("\xe2\x82"), "??");
  EXPECT_EQ(Printable("\xe2\x82;\xe2\x82\xac"), "??;\xe2\x82\xac");
}

// A name can neither add a frame nor be taken for a count, an annotation or
// the delimiter.
TEST(SafeNameTest, FoldedNamesCannotForgeALine) {
  EXPECT_EQ(FoldedName(""), "[unknown]");
  EXPECT_EQ(FoldedName("a;b"), "a:b");
  EXPECT_EQ(FoldedName("f 12"), "f_12");
  EXPECT_EQ(FoldedName("f 1.5 12"), "f_1.5_12");
  EXPECT_EQ(FoldedName("12"), "12");
  EXPECT_EQ(FoldedName(" "), "_");
  EXPECT_EQ(FoldedName("f  "), "f__");
  EXPECT_EQ(FoldedName("f 12x"), "f 12x");
  EXPECT_EQ(FoldedName("f_[k]"), "f_(k)");
  EXPECT_EQ(FoldedName("_[j]"), "_(j)");
  EXPECT_EQ(FoldedName("a[k]"), "a[k]");
  EXPECT_EQ(FoldedName("-"), "_");
  EXPECT_EQ(FoldedName("--"), "__");
  EXPECT_EQ(FoldedName("---"), "---");
}

// Only quotes and backslashes need an escape once controls are gone.
TEST(SafeNameTest, EscapesJson) {
  EXPECT_EQ(JsonText("a\"b\\c\n"), "a\\\"b\\\\c?");
  EXPECT_EQ(JsonText("\"\""), "\\\"\\\"");
  EXPECT_EQ(JsonText("\xe2\"\x82"), "?\\\"?");
  EXPECT_EQ(JsonText(""), "");
}

}  // namespace
}  // namespace profd
