// SPDX-License-Identifier: Apache-2.0
// Columns of numbers, read several at a time, are what one number after the
// other is.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "daemon/history/number_reader.h"
#include "ksym/base/byte_cursor.h"
#include "ksym/base/count_leb128.h"

namespace profd::history {
namespace {

// Numbers of so many bytes each, each written at its full length.
std::string NumbersOf(const std::vector<size_t>& sizes, std::mt19937& random) {
  std::string column;
  for (const size_t size : sizes) {
    for (size_t i = 0; i < size; ++i) {
      const auto bits = static_cast<unsigned>(random() & 0x7f);
      column += static_cast<char>(i + 1 < size ? bits | 0x80 : bits);
    }
  }
  return column;
}

// As ColumnReader reads them.
template <Code kCode>
std::vector<uint64_t> ReadAll(const std::string& column, size_t& alike) {
  NumberReader reader(column);
  const size_t count = ksym::CountLeb128(column);
  std::vector<uint64_t> numbers;
  uint64_t before = 0;
  const auto put = [&](uint64_t number) {
    before = number;
    numbers.push_back(number);
  };
  while (numbers.size() < count) {
    const size_t place = numbers.size();
    const size_t read =
        reader.ReadAlike<kCode>(before, place, count - place, put);
    alike += read;
    if (read == 0) put(reader.Read<kCode>(before, place));
  }
  EXPECT_TRUE(reader.IsDone());
  return numbers;
}

template <Code kCode>
std::vector<uint64_t> ReadEach(const std::string& column) {
  ksym::ByteCursor cursor(std::as_bytes(std::span(column)));
  std::vector<uint64_t> numbers;
  uint64_t before = 0;
  while (!cursor.AtEnd()) {
    if constexpr (kCode == Code::kStep) {
      before += static_cast<uint64_t>(cursor.ReadSleb128());
    } else if constexpr (kCode == Code::kDistance) {
      before = numbers.size() - cursor.ReadUleb128();
    } else {
      before = cursor.ReadUleb128();
    }
    numbers.push_back(before);
  }
  return numbers;
}

void ExpectSame(const std::string& column, size_t& alike) {
  EXPECT_EQ(ReadAll<Code::kPlain>(column, alike),
            ReadEach<Code::kPlain>(column));
  EXPECT_EQ(ReadAll<Code::kStep>(column, alike), ReadEach<Code::kStep>(column));
  EXPECT_EQ(ReadAll<Code::kDistance>(column, alike),
            ReadEach<Code::kDistance>(column));
}

TEST(HistoryNumbers, AreTheSameSeveralAtATime) {
  std::mt19937 random(1);
  size_t alike = 0, all = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<size_t> sizes;
    // Runs of one size, and of each up to that of 64 bits.
    for (int run = 0; run < 20; ++run) {
      const size_t size = random() % 3 == 0 ? 1 + random() % 9 : 1 + run % 2;
      sizes.insert(sizes.end(), 1 + random() % 30, size);
    }
    const std::string column = NumbersOf(sizes, random);
    EXPECT_EQ(ksym::CountLeb128(column), sizes.size());
    ExpectSame(column, alike);
    all += 3 * sizes.size();
  }
  EXPECT_GT(alike, all / 3);
  EXPECT_LT(alike, all);
}

TEST(HistoryNumbers, AreTheSameAtTheEndOfAColumn) {
  std::mt19937 random(2);
  size_t alike = 0;
  for (size_t count = 0; count < 40; ++count) {
    for (size_t size = 1; size <= 3; ++size) {
      ExpectSame(NumbersOf(std::vector(count, size), random), alike);
    }
  }
}

TEST(HistoryNumbers, EndEarly) {
  // Eight numbers begin; the last one has no end.
  const std::string column("\1\1\1\1\1\1\1\x81", 8);
  EXPECT_EQ(ksym::CountLeb128(column), 7u);
  NumberReader reader(column);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(reader.Read<Code::kPlain>(0, 0), 1u);
  EXPECT_FALSE(reader.IsDone());
}

}  // namespace
}  // namespace profd::history
