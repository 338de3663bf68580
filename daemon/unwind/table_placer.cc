// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/table_placer.h"

#include <utility>
#include <vector>

namespace profd {
namespace {

// Smaller pieces of a table would be too many.
constexpr size_t kMinSlots = UNWIND_SHARD_SLOTS / 16;

}  // namespace

bool TablePlacer::PrepareRoom(TableFile& file) {
  // One that was evicted is cut again.
  if (file.pieces.empty()) {
    file.pieces = CutIntoPieces(file.rows->rows, file.rows->size);
  }
  std::vector<uint32_t> slots;
  slots.reserve(file.pieces.size());
  for (const UnwindPiece& piece : file.pieces) {
    slots.push_back(static_cast<uint32_t>(piece.slots()));
  }
  return maps_.PrepareRoom(slots);
}

bool TablePlacer::Place(TableFile& file) {
  if (PlacePieces(file, UNWIND_SHARD_SLOTS, 0)) return true;
  Drop(file);
  return false;
}

// The table from `begin` on; false when there is no room for all of it.
bool TablePlacer::PlacePieces(TableFile& file, size_t max_slots,
                              uint64_t begin) {
  const bool is_cut =
      begin == 0 && max_slots == UNWIND_SHARD_SLOTS && !file.pieces.empty();
  const auto pieces = is_cut ? std::exchange(file.pieces, {})
                             : CutIntoPieces(file.rows->rows, file.rows->size,
                                             max_slots, begin);
  for (const UnwindPiece& piece : pieces) {
    meanwhile_();
    auto added = maps_.Add(piece);
    if (!added) refusal_ = added.error().message();
    const auto place = std::move(added).value_or(std::nullopt);
    if (!place) {
      // There may be room between other tables.
      return max_slots > kMinSlots &&
             PlacePieces(file, max_slots / 4, piece.begin);
    }
    bytes_ += piece.slots() * sizeof(uint64_t);
    file.table.pieces.push_back(
        {.begin = piece.begin,
         .end = piece.end,
         .rows_at = static_cast<uint32_t>(piece.index.size()),
         .place = *place});
  }
  return true;
}

uint64_t TablePlacer::Drop(TableFile& file) {
  uint64_t slots = 0;
  for (const UnwindFile::Piece& piece : file.table.pieces) {
    maps_.FreeSlots(piece.place);
    slots += piece.place.count;
  }
  bytes_ -= slots * sizeof(uint64_t);
  file.table.pieces.clear();
  return slots;
}

}  // namespace profd
