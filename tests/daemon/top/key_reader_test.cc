// SPDX-License-Identifier: Apache-2.0
#include "daemon/top/key_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace profd {
namespace {

using Kind = Key::Kind;

std::vector<Kind> KindsOf(const std::vector<Key>& keys) {
  std::vector<Kind> kinds;
  for (const Key& key : keys) kinds.push_back(key.kind);
  return kinds;
}

// The same bytes give the same keys wherever they are cut.
TEST(KeyReaderTest, MakesTheSameKeysOfAnyPieces) {
  const std::string bytes = "q\x1b[A\x1bOB/\xc3\xa9\xe2\x82\xac\x7f\r\x1b[5~w";
  KeyReader whole;
  const std::vector<Key> expected = whole.Read(bytes);
  EXPECT_EQ(KindsOf(expected),
            (std::vector<Kind>{Kind::kText, Kind::kUp, Kind::kDown, Kind::kText,
                               Kind::kText, Kind::kText, Kind::kBackspace,
                               Kind::kEnter, Kind::kPageUp, Kind::kText}));
  EXPECT_EQ(expected[4].text, "\xc3\xa9");
  EXPECT_EQ(expected[5].text, "\xe2\x82\xac");
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    KeyReader reader;
    std::vector<Key> keys = reader.Read(bytes.substr(0, cut));
    for (Key& key : reader.Read(bytes.substr(cut))) keys.push_back(key);
    EXPECT_EQ(keys, expected) << cut;
    EXPECT_FALSE(reader.is_waiting()) << cut;
  }
}

// ESC alone is the key when nothing follows it, or what follows is another key.
TEST(KeyReaderTest, TellsEscapeFromSequences) {
  KeyReader reader;
  EXPECT_TRUE(reader.Read("\x1b").empty());
  EXPECT_TRUE(reader.is_waiting());
  EXPECT_EQ(KindsOf(reader.GiveUp()), std::vector<Kind>{Kind::kEscape});
  EXPECT_FALSE(reader.is_waiting());
  EXPECT_TRUE(reader.GiveUp().empty());
  EXPECT_EQ(KindsOf(reader.Read("\x1bq")),
            (std::vector<Kind>{Kind::kEscape, Kind::kText}));
  EXPECT_EQ(KindsOf(reader.Read("\x1b\x1b[B")),
            (std::vector<Kind>{Kind::kEscape, Kind::kDown}));
}

// What is no key is passed over as a whole: none of its bytes is a key.
TEST(KeyReaderTest, PassesOverOtherSequences) {
  KeyReader reader;
  EXPECT_TRUE(reader.Read("\x1b[1;5A\x1b[200~\x1b[?1;2c\x1bOP").empty());
  EXPECT_FALSE(reader.is_waiting());
  EXPECT_EQ(KindsOf(reader.Read("\x1b[12\x1b[A")),
            std::vector<Kind>{Kind::kUp});
}

// A sequence without an end is given up at its bound, and one byte before that
// it is waited for.
TEST(KeyReaderTest, BoundsSequences) {
  KeyReader reader;
  const std::string begin = "\x1b[";
  const std::string most(KeyReader::kMaxSequenceBytes - 1, '1');
  EXPECT_TRUE(reader.Read(begin + most).empty());
  EXPECT_TRUE(reader.is_waiting());
  EXPECT_TRUE(reader.Read("1").empty());
  EXPECT_FALSE(reader.is_waiting());
  EXPECT_EQ(KindsOf(reader.Read("q")), std::vector<Kind>{Kind::kText});
}

// Bytes that are no printable UTF-8 are no keys, and harm none behind them.
TEST(KeyReaderTest, PassesOverBytesThatAreNoText) {
  KeyReader reader;
  const std::vector<Key> keys = reader.Read("\x01\x80\xff\xc3q\xe2\x80\xaew");
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0].text, "q");
  EXPECT_EQ(keys[1].text, "w");
}

}  // namespace
}  // namespace profd
