// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace ksym {
namespace {

// A number is the whole text and fits its type.
TEST(ParseThousandthsTest, TakesUpToThreeDigits) {
  EXPECT_EQ(ParseThousandths("2"), 200u);
  EXPECT_EQ(ParseThousandths("24"), 240u);
  EXPECT_EQ(ParseThousandths("024"), 24u);
  EXPECT_EQ(ParseThousandths("999"), 999u);
  for (const char* text : {"", "1234", "-1", "1x", "0.1", " 1"}) {
    EXPECT_EQ(ParseThousandths(text), std::nullopt) << text;
  }
}

TEST(ParseUnsignedTest, TakesWholeNumbersOnly) {
  EXPECT_EQ(ParseUnsigned("0", 10), 0u);
  EXPECT_EQ(ParseUnsigned("18446744073709551615", 10), UINT64_MAX);
  EXPECT_EQ(ParseUnsigned("18446744073709551616", 10), std::nullopt);
  EXPECT_EQ(ParseUnsigned("ffFF", 16), 0xffffu);
  EXPECT_EQ(ParseUnsigned<uint8_t>("255", 10), 255);
  EXPECT_EQ(ParseUnsigned<uint8_t>("256", 10), std::nullopt);
}

// Whatever else strtoul would take is refused.
TEST(ParseUnsignedTest, RefusesEverythingElse) {
  for (const std::string_view text :
       {"", " 1", "1 ", "+1", "-1", "0x1", "1g"}) {
    EXPECT_EQ(ParseUnsigned(text, 16), std::nullopt) << text;
  }
}

// Fields come off the front; the last one is what is left.
TEST(TakeFieldTest, SplitsAtSeparators) {
  std::string_view text = "a,,b";
  EXPECT_EQ(TakeField(text, ','), "a");
  EXPECT_EQ(TakeField(text, ','), "");
  EXPECT_EQ(TakeField(text, ','), "b");
  EXPECT_EQ(text, "");
  EXPECT_EQ(TakeField(text, ','), "");
}

// Only the front is trimmed, and only of the character.
TEST(TrimLeftTest, TrimsFront) {
  EXPECT_EQ(TrimLeft("  a "), "a ");
  EXPECT_EQ(TrimLeft("   "), "");
  EXPECT_EQ(TrimLeft(""), "");
  EXPECT_EQ(TrimLeft("\t a", '\t'), " a");
}

}  // namespace
}  // namespace ksym
