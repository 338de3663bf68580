// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/row_reader.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace profd::fleet {
namespace {

using namespace std::string_view_literals;

// As a server writes a row of (UInt64, String, Array(String), UInt8).
constexpr std::string_view kRow =
    "\x2a\0\0\0\0\0\0\x80"
    "\5shop\xff"
    "\2\1a\0"
    "\7"sv;

TEST(RowReaderTest, ReadsColumns) {
  const std::string rows = std::string(kRow) + std::string(kRow);
  RowReader reader(rows);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(reader.HasRow());
    EXPECT_EQ(reader.Number<uint64_t>(), 0x800000000000002a);
    EXPECT_EQ(reader.Text(), "shop\xff");
    std::vector<std::string_view> names;
    for (size_t left = reader.List(); left > 0; --left) {
      names.push_back(reader.Text());
    }
    EXPECT_EQ(names, (std::vector<std::string_view>{"a", ""}));
    EXPECT_EQ(reader.Number<uint8_t>(), 7);
  }
  EXPECT_FALSE(reader.HasRow());
  EXPECT_TRUE(reader.Finish());
}

TEST(RowReaderTest, NoRowsAreAnAnswer) {
  const RowReader reader("");
  EXPECT_FALSE(reader.HasRow());
  EXPECT_TRUE(reader.Finish());
}

// Wherever a row is cut off.
TEST(RowReaderTest, RefusesAPartOfARow) {
  for (size_t size = 1; size < kRow.size(); ++size) {
    RowReader reader(kRow.substr(0, size));
    (void)reader.Number<uint64_t>();
    (void)reader.Text();
    for (size_t left = reader.List(); left > 0; --left) (void)reader.Text();
    (void)reader.Number<uint8_t>();
    EXPECT_FALSE(reader.Finish()) << size;
    EXPECT_FALSE(reader.HasRow()) << size;
  }
}

// A length is no reason to take memory, nor to go round for long.
TEST(RowReaderTest, RefusesLengthsBeyondTheEnd) {
  constexpr auto kHuge = "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"sv;
  RowReader text(kHuge);
  EXPECT_EQ(text.Text(), "");
  EXPECT_FALSE(text.Finish());
  RowReader list(kHuge);
  EXPECT_EQ(list.List(), 0u);
  EXPECT_FALSE(list.Finish());
  RowReader three("\3\0\0"sv);
  EXPECT_EQ(three.List(), 0u);
  EXPECT_FALSE(three.Finish());
}

TEST(RowReaderTest, SaysWhatItsReaderRefused) {
  RowReader reader("\1"sv);
  (void)reader.Number<uint8_t>();
  EXPECT_TRUE(reader.Finish());
  reader.Refuse();
  EXPECT_FALSE(reader.Finish());
}

}  // namespace
}  // namespace profd::fleet
