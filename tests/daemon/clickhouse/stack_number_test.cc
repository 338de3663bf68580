// SPDX-License-Identifier: Apache-2.0
#include "daemon/clickhouse/stack_number.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "daemon/clickhouse/frame_numbers.h"

namespace profd::clickhouse {
namespace {

using std::string_literals::operator""s;

// FIPS 180-2's example, and the empty text.
TEST(StackNumberTest, IsTheBeginningOfSha256) {
  EXPECT_EQ(NumberOfStack("abc"), 0xba7816bf8f01cfea);
  EXPECT_EQ(NumberOfStack(""), 0xe3b0c44298fc1c14);
}

// As docs/fleet.md has it.
TEST(StackNumberTest, HasLengthsInFrontOfTexts) {
  std::string bytes;
  AppendIdentity({.kind = 1, .name = "main", .module = "/bin/a"}, bytes);
  EXPECT_EQ(bytes, "\x01\x04\0\0\0main\x06\0\0\0/bin/a"s);
  EXPECT_EQ(NumberOfStack(bytes), 0x215b6d3875d5f5ab);
  std::set<std::string> different;
  for (const auto& [name, module] :
       {std::pair("ab", "c"), std::pair("a", "bc"), std::pair("", "abc")}) {
    std::string one;
    AppendIdentity({.kind = 1, .name = name, .module = module}, one);
    different.insert(one);
  }
  EXPECT_EQ(different.size(), 3u);
}

// They are in tables for years.
TEST(FrameNumberTest, StaysTheSame) {
  std::set<uint8_t> numbers;
  for (const FrameNumber& row : kFrameNumbers) numbers.insert(row.number);
  EXPECT_EQ(numbers.size(), kFrameKinds.size());
  EXPECT_FALSE(numbers.contains(kMarkNumber));
  EXPECT_EQ(NumberOfKind(&kUserFrame), 1);
  EXPECT_EQ(NumberOfKind(&kKernelFrame), 4);
  EXPECT_EQ(NumberOfKind(&kPythonFrame), 8);
  EXPECT_EQ(NumberOfKind(&kWakerFrame), 16);
}

}  // namespace
}  // namespace profd::clickhouse
