// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/unwind_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace profd {
namespace {

using ksym::UnwindRow;

// The row that the sampler finds: by the index, then between two numbers.
UnwindRow Find(const UnwindPiece& piece, uint64_t pc) {
  const auto number = [&](uint64_t n) {
    return (piece.index[n / 4] >> (n % 4 * 16)) & 0xffff;
  };
  const uint64_t block =
      (pc >> UNWIND_BLOCK_SHIFT) - (piece.begin >> UNWIND_BLOCK_SHIFT);
  uint64_t row = number(block);
  for (uint64_t i = row; i <= number(block + 1); ++i) {
    if (piece.rows[i].pc <= pc) row = i;
  }
  return piece.rows[row];
}

UnwindRow Expected(const std::vector<UnwindRow>& rows, uint64_t pc) {
  return *std::prev(std::ranges::upper_bound(rows, pc, {}, &UnwindRow::pc));
}

std::vector<UnwindRow> RandomRows(uint32_t code_bytes, uint32_t step) {
  std::mt19937 random(1);
  std::vector<UnwindRow> rows;
  for (uint32_t pc = 0; pc < code_bytes;
       pc += static_cast<uint32_t>(1 + random() % step)) {
    rows.push_back({.pc = pc,
                    .cfa_offset = static_cast<int16_t>(random() & 0x7fff),
                    .fp_offset = static_cast<int8_t>(random() & 0x7f),
                    .rule = static_cast<uint8_t>(random() & 0xff)});
  }
  return rows;
}

// Pieces follow each other over all of the code, and in each every address has
// the row that it has in the whole table, whatever their size.
TEST(UnwindPiecesTest, HaveTheTablesRows) {
  for (const size_t max_slots : {300, 1000, UNWIND_SHARD_SLOTS}) {
    for (const uint32_t step : {4, 60, 5000}) {
      constexpr uint32_t kCode = 50'001;
      const auto rows = RandomRows(kCode, step);
      uint64_t covered = 0;
      for (const UnwindPiece& piece : CutIntoPieces(rows, kCode, max_slots)) {
        ASSERT_EQ(piece.begin, covered);
        ASSERT_LE(piece.slots(), max_slots);
        covered = piece.end;
        for (uint64_t pc = piece.begin; pc < piece.end; ++pc) {
          const UnwindRow found = Find(piece, pc);
          const UnwindRow expected = Expected(rows, pc);
          ASSERT_EQ(found.cfa_offset, expected.cfa_offset) << pc;
          ASSERT_EQ(found.rule, expected.rule) << pc;
          ASSERT_LE(found.pc, pc);
        }
      }
      EXPECT_GE(covered, kCode);
      EXPECT_LT(covered, kCode + (1 << UNWIND_BLOCK_SHIFT));
    }
  }
}

// No rows, no pieces; a block that has more rows than fit is left out.
TEST(UnwindPiecesTest, LeavesOutWhatDoesNotFit) {
  EXPECT_TRUE(CutIntoPieces({}, 1000).empty());
  std::vector<UnwindRow> rows;
  rows.reserve(257);
  for (uint32_t pc = 0; pc < 256; ++pc) rows.push_back({.pc = pc});
  rows.push_back({.pc = 256, .rule = 1});
  const auto pieces = CutIntoPieces(rows, 512, 100);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].begin, 256u);
  EXPECT_EQ(pieces[0].end, 512u);
}

}  // namespace
}  // namespace profd
