// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/unwind_pieces.h"

#include <algorithm>
#include <utility>

namespace profd {
namespace {

using ksym::UnwindRow;

constexpr uint64_t kBlockBytes = uint64_t{1} << UNWIND_BLOCK_SHIFT;
// 16-bit numbers of the index in one slot.
constexpr size_t kNumbersPerSlot = 4;

static_assert(sizeof(unwind_row) == sizeof(UnwindRow));
static_assert(offsetof(unwind_row, cfa_offset) ==
              offsetof(UnwindRow, cfa_offset));
static_assert(offsetof(unwind_row, fp_offset) ==
              offsetof(UnwindRow, fp_offset));
static_assert(offsetof(unwind_row, rule) == offsetof(UnwindRow, rule));

size_t IndexSlots(size_t numbers) {
  return (numbers + kNumbersPerSlot - 1) / kNumbersPerSlot;
}

// The part of the code that one piece covers, while it grows by blocks.
class Part {
 public:
  Part(std::span<const UnwindRow> rows, uint64_t begin)
      : rows_(rows), begin_(begin), end_(begin) {
    first_ = last_ = InForce(begin);
    numbers_.push_back(0);
  }

  // False when the piece would have too many slots.
  bool AddBlock(size_t max_slots) {
    const size_t next = InForce(end_ + kBlockBytes);
    const size_t rows = next - first_ + 1;
    if (IndexSlots(numbers_.size() + 1) + rows > max_slots) return false;
    numbers_.push_back(next - first_);
    last_ = next;
    end_ += kBlockBytes;
    return true;
  }

  uint64_t end() const { return end_; }

  UnwindPiece Make() const {
    UnwindPiece piece;
    piece.begin = begin_;
    piece.end = end_;
    piece.index.resize(IndexSlots(numbers_.size()));
    for (size_t i = 0; i < numbers_.size(); ++i) {
      piece.index[i / kNumbersPerSlot] |= uint64_t{numbers_[i]}
                                          << (16 * (i % kNumbersPerSlot));
    }
    // The first may begin before the piece: searches end at it.
    piece.rows = rows_.subspan(first_, last_ - first_ + 1);
    return piece;
  }

 private:
  // The row that holds at `pc`; O(1) if asked in the order of pc.
  size_t InForce(uint64_t pc) {
    if (cursor_ == 0 || rows_[cursor_].pc > pc) {
      cursor_ = static_cast<size_t>(
          std::ranges::upper_bound(rows_, pc, {}, &UnwindRow::pc) -
          rows_.begin());
      cursor_ -= cursor_ > 0 ? 1 : 0;
    }
    while (cursor_ + 1 < rows_.size() && rows_[cursor_ + 1].pc <= pc) ++cursor_;
    return cursor_;
  }

  std::span<const UnwindRow> rows_;
  uint64_t begin_;
  uint64_t end_;
  size_t first_;
  size_t last_;
  size_t cursor_ = 0;
  std::vector<size_t> numbers_;
};

}  // namespace

std::vector<UnwindPiece> CutIntoPieces(std::span<const UnwindRow> rows,
                                       uint64_t code_bytes, size_t max_slots,
                                       uint64_t begin) {
  // Numbers of rows within a piece have 16 bits.
  max_slots = std::min<size_t>(max_slots, UNWIND_SHARD_SLOTS);
  std::vector<UnwindPiece> pieces;
  while (!rows.empty() && begin < code_bytes) {
    Part part(rows, begin);
    while (part.end() < code_bytes && part.AddBlock(max_slots)) {
    }
    if (part.end() == begin) {
      begin += kBlockBytes;
      continue;
    }
    pieces.push_back(part.Make());
    begin = part.end();
  }
  return pieces;
}

}  // namespace profd
