// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/unwind_file.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

namespace profd {
namespace {

using ksym::ElfSegment;
using ksym::Mapping;

// The sampler compares addresses as signed numbers; user memory ends below.
constexpr uint64_t kUserEnd = uint64_t{1} << 63;
// A block boundary, as all that entries are split at.
constexpr uint64_t kMaxBytes = std::numeric_limits<uint32_t>::max() >>
                               UNWIND_BLOCK_SHIFT << UNWIND_BLOCK_SHIFT;

uint64_t Overlap(const Mapping& mapping, const ElfSegment& segment) {
  const uint64_t begin =
      std::max(mapping.file_offset.value, segment.file_offset.value);
  const uint64_t end =
      std::min(mapping.file_offset.value + (mapping.end - mapping.start),
               segment.file_offset.value + segment.file_size);
  return end > begin ? end - begin : 0;
}

void AppendWithoutTable(uint64_t begin, uint64_t end, NoTable why,
                        std::vector<unwind_mapping>& mappings) {
  while (begin < end) {
    const uint64_t size = std::min(end - begin, kMaxBytes);
    unwind_mapping entry = {};
    entry.start = begin;
    entry.size = static_cast<uint32_t>(size);
    entry.shard = why == NoTable::kYet ? UNWIND_PENDING : UNWIND_NO_TABLE;
    mappings.push_back(entry);
    begin += size;
  }
}

}  // namespace

// The segment that most of the mapping shows decides: a page at an edge may
// belong to two.
std::optional<uint64_t> UnwindFile::LoadBias(const Mapping& mapping) const {
  const auto best = std::ranges::max_element(
      code, {}, [&](const ElfSegment& s) { return Overlap(mapping, s); });
  if (best == code.end() || Overlap(mapping, *best) == 0) return std::nullopt;
  return mapping.start.value - mapping.file_offset.value +
         best->file_offset.value - best->address.value;
}

void AppendUnwindMappings(const Mapping& mapping, NoTable why,
                          std::vector<unwind_mapping>& mappings) {
  if (mapping.end.value > kUserEnd) return;
  // It may be nearly all of user memory, which is no code for the most part.
  if (mapping.path == ksym::kTooLargePath) return;
  AppendWithoutTable(mapping.start.value, mapping.end.value, why, mappings);
}

void AppendUnwindMappings(const Mapping& mapping, const UnwindFile& file,
                          std::vector<unwind_mapping>& mappings) {
  if (mapping.end.value > kUserEnd) return;
  const auto load_bias = file.LoadBias(mapping);
  uint64_t done = mapping.start.value;
  const uint64_t end = mapping.end.value;
  if (load_bias) {
    // Wraps when the mapping shows something in front of the table.
    const uint64_t base = *load_bias + file.base.value;
    for (const UnwindFile::Piece& piece : file.pieces) {
      const auto bias = static_cast<int64_t>(base);
      const auto at = [&](uint64_t pc) {
        const int64_t address = bias + static_cast<int64_t>(pc);
        return std::clamp(address, static_cast<int64_t>(done),
                          static_cast<int64_t>(end));
      };
      const auto from = static_cast<uint64_t>(at(piece.begin));
      const auto to = static_cast<uint64_t>(at(piece.end));
      if (from >= to) continue;
      AppendWithoutTable(done, from, NoTable::kEver, mappings);
      mappings.push_back(
          {.start = from,
           .base = base,
           .size = static_cast<uint32_t>(to - from),
           .shard = piece.place.shard,
           .first_block =
               static_cast<uint32_t>(piece.begin >> UNWIND_BLOCK_SHIFT),
           .index = static_cast<uint16_t>(piece.place.first),
           .rows = static_cast<uint16_t>(piece.place.first + piece.rows_at)});
      done = to;
    }
  }
  AppendWithoutTable(done, end, NoTable::kEver, mappings);
}

}  // namespace profd
