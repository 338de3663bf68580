// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/sql_literal.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace profd::fleet {
namespace {

TEST(SqlLiteralTest, PlainNamesStayAsTheyAre) {
  EXPECT_EQ(SqlText(""), "''");
  EXPECT_EQ(SqlText("shop-7.service"), "'shop-7.service'");
  EXPECT_EQ(SqlText("kworker/0:1 a_b@c"), "'kworker/0:1 a_b@c'");
}

TEST(SqlLiteralTest, WhatCouldEndTheTextIsANumber) {
  EXPECT_EQ(SqlText("'"), R"('\x27')");
  EXPECT_EQ(SqlText("\\"), R"('\x5C')");
  EXPECT_EQ(SqlText("\\'"), R"('\x5C\x27')");
  EXPECT_EQ(SqlText(std::string_view("a\0b", 3)), R"('a\x00b')");
  EXPECT_EQ(SqlText("x' OR 1=1 --"), R"('x\x27 OR 1\x3D1 --')");
  EXPECT_EQ(SqlText("`\"%;{}\n"), R"('\x60\x22\x25\x3B\x7B\x7D\x0A')");
  EXPECT_EQ(SqlText("\xff\xc3(\xe2\x82"), R"('\xFF\xC3\x28\xE2\x82')");
}

// No byte becomes one that could mean something, but for the encoder's own.
TEST(SqlLiteralTest, AnyByteIsHarmless) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    const std::string sql = SqlText(text);
    ASSERT_GE(sql.size(), 3u);
    EXPECT_EQ(sql.front(), '\'');
    EXPECT_EQ(sql.back(), '\'');
    const std::string inner = sql.substr(1, sql.size() - 2);
    if (inner.size() == 1) {
      EXPECT_EQ(inner, text);
      EXPECT_EQ(inner.find_first_of("'\\\"`"), std::string::npos);
    } else {
      ASSERT_EQ(inner.size(), 4u);
      EXPECT_EQ(inner.substr(0, 2), "\\x");
      EXPECT_EQ(std::stoi(inner.substr(2), nullptr, 16), byte);
    }
  }
}

}  // namespace
}  // namespace profd::fleet
