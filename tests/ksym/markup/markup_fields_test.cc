// SPDX-License-Identifier: Apache-2.0
#include "ksym/markup/markup_fields.h"

#include <gtest/gtest.h>

#include <optional>

namespace ksym {
namespace {

TEST(MarkupFieldsTest, Addresses) {
  // "0x" and up to 64 bits; without "0x" only zeros.
  EXPECT_EQ(ParseMarkupAddress("0x1f"), Address{0x1f});
  EXPECT_EQ(ParseMarkupAddress("0xffffFFFFffffFFFF"), Address{UINT64_MAX});
  EXPECT_EQ(ParseMarkupAddress("000"), Address{0});
  for (const char* text :
       {"", "1", "0x", "0X1", "0x1g", "0x10000000000000000", "-0x1", " 0x1"}) {
    EXPECT_EQ(ParseMarkupAddress(text), std::nullopt) << text;
  }
}

TEST(MarkupFieldsTest, Integers) {
  // The prefix gives the base.
  EXPECT_EQ(ParseMarkupInteger("0"), 0u);
  EXPECT_EQ(ParseMarkupInteger("10"), 10u);
  EXPECT_EQ(ParseMarkupInteger("010"), 8u);
  EXPECT_EQ(ParseMarkupInteger("0x10"), 16u);
  EXPECT_EQ(ParseMarkupInteger("0X1f"), 31u);
  EXPECT_EQ(ParseMarkupInteger("0b11"), 3u);
  EXPECT_EQ(ParseMarkupInteger("0o17"), 15u);
  EXPECT_EQ(ParseMarkupInteger("18446744073709551615"), UINT64_MAX);
  for (const char* text :
       {"", "-1", "08", "0x", "1f", "18446744073709551616"}) {
    EXPECT_EQ(ParseMarkupInteger(text), std::nullopt) << text;
  }
}

TEST(MarkupFieldsTest, BytesAndModes) {
  // Both in lower case; bytes may lack a digit, modes have an order.
  EXPECT_EQ(ParseMarkupBytes("AbC1"), "abc1");
  EXPECT_EQ(ParseMarkupBytes("abc"), "0abc");
  EXPECT_EQ(ParseMarkupBytes(""), std::nullopt);
  EXPECT_EQ(ParseMarkupBytes("0x"), std::nullopt);
  EXPECT_EQ(ParseMarkupMode("RwX"), "rwx");
  EXPECT_EQ(ParseMarkupMode("x"), "x");
  for (const char* text : {"", "xr", "rr", "rwxp", "-"}) {
    EXPECT_EQ(ParseMarkupMode(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace ksym
