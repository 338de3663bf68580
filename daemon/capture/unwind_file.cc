#include "daemon/capture/unwind_file.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "ksym/dwarf/unwind_table.h"

namespace profd {
namespace {

using ksym::ElfSegment;
using ksym::Mapping;

// The sampler compares addresses as signed numbers; user memory ends below.
constexpr uint64_t kUserEnd = uint64_t{1} << 63;
// A block boundary, as all that entries are split at.
constexpr uint64_t kMostBytes = std::numeric_limits<uint32_t>::max() >>
                                UNWIND_BLOCK_SHIFT << UNWIND_BLOCK_SHIFT;

uint64_t Overlap(const Mapping& mapping, const ElfSegment& segment) {
  const uint64_t begin =
      std::max(mapping.file_offset.value, segment.file_offset.value);
  const uint64_t end =
      std::min(mapping.file_offset.value + (mapping.end - mapping.start),
               segment.file_offset.value + segment.file_size);
  return end > begin ? end - begin : 0;
}

// Where the mapping's first byte is by the file's headers. The segment that
// most of it shows decides: a page at an edge may belong to two.
std::optional<uint64_t> ElfStart(const Mapping& mapping,
                                 const std::vector<ElfSegment>& code) {
  const auto best = std::ranges::max_element(
      code, {}, [&](const ElfSegment& s) { return Overlap(mapping, s); });
  if (best == code.end() || Overlap(mapping, *best) == 0) return std::nullopt;
  return best->address.value - best->file_offset.value +
         mapping.file_offset.value;
}

void AppendWithoutTable(uint64_t begin, uint64_t end,
                        std::vector<unwind_mapping>& mappings) {
  while (begin < end) {
    const uint64_t size = std::min(end - begin, kMostBytes);
    unwind_mapping entry = {};
    entry.start = begin;
    entry.size = static_cast<uint32_t>(size);
    entry.shard = UNWIND_NO_TABLE;
    mappings.push_back(entry);
    begin += size;
  }
}

}  // namespace

ksym::Result<BuiltUnwindFile> BuildUnwindFile(const ksym::ByteSource& source) {
  const auto image = ksym::ElfImage::Parse(source);
  if (!image) return ksym::Fail(image.error());
  const auto table = ksym::BuildUnwindTable(source, *image);
  if (!table) return ksym::Fail(table.error());
  BuiltUnwindFile built;
  built.file.base = table->base;
  std::ranges::copy_if(image->segments(), std::back_inserter(built.file.code),
                       &ElfSegment::executable);
  built.pieces = CutIntoPieces(table->rows, table->size);
  return built;
}

void AppendUnwindMappings(const Mapping& mapping, const UnwindFile* file,
                          std::vector<unwind_mapping>& mappings) {
  if (mapping.end.value > kUserEnd) return;
  const auto elf_start =
      file == nullptr ? std::nullopt : ElfStart(mapping, file->code);
  uint64_t done = mapping.start.value;
  const uint64_t end = mapping.end.value;
  if (elf_start) {
    // Wraps when the mapping shows something in front of the table.
    const uint64_t base = mapping.start.value - *elf_start + file->base.value;
    for (const UnwindFile::Piece& piece : file->pieces) {
      const auto bias = static_cast<int64_t>(base);
      const auto at = [&](uint64_t pc) {
        const int64_t address = bias + static_cast<int64_t>(pc);
        return std::clamp(address, static_cast<int64_t>(done),
                          static_cast<int64_t>(end));
      };
      const auto from = static_cast<uint64_t>(at(piece.begin));
      const auto to = static_cast<uint64_t>(at(piece.end));
      if (from >= to) continue;
      AppendWithoutTable(done, from, mappings);
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
  AppendWithoutTable(done, end, mappings);
}

}  // namespace profd
