// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/map_tables.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ksym/kernel/bit_stream.h"
#include "ksym/kernel/map_checks.h"

namespace ksym {

Result<MapTables> MapTables::Parse(std::span<const std::byte> bytes) {
  auto map = MapSections::Parse(bytes);
  if (!map) return Fail(map.error());
  MapTables tables;
  tables.map_ = *map;
  if (map->header().entry_count == 0) return tables;
  if (auto ok = CheckMapIndexes(*map); !ok) return Fail(ok.error());
  auto names = MapNames::Make(*map);
  if (!names) return Fail(names.error());
  tables.names_ = std::move(*names);
  if (auto ok = tables.MakeCodes(); !ok) return Fail(ok.error());
  tables.block_count_ = map->block_count();
  tables.segment_count_ =
      static_cast<uint32_t>(map->CountOf<MapSegment>(MapSectionId::kSegments));
  tables.MakeRunHints();
  tables.MakeStartSamples();
  return tables;
}

Status MapTables::MakeCodes() {
  auto entries = PrefixDecoder::Make(header().entry_lengths);
  auto names =
      PrefixDecoder::Make(header().name_lengths, BitOrder::kLowestFirst);
  if (!entries || !names) return DamagedMap("a prefix code is not complete");
  if (entries->symbol_count() >
          map_.CountOf<uint16_t>(MapSectionId::kEntryValues) ||
      names->symbol_count() >
          map_.CountOf<uint16_t>(MapSectionId::kNameValues)) {
    return DamagedMap("a prefix code with too few values");
  }
  entry_code_ = *entries;
  name_code_ = *names;
  return {};
}

uint64_t MapTables::SegmentBase(uint32_t block) const {
  uint32_t low = 0;
  uint32_t high = segment_count_;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    const auto segment = Load<MapSegment>(MapSectionId::kSegments, middle);
    (segment.first_block <= block ? low : high) = middle;
  }
  return Load<MapSegment>(MapSectionId::kSegments, low).base;
}

uint64_t MapTables::BlockStart(uint32_t block) const {
  return SegmentBase(block) + Load<uint32_t>(MapSectionId::kBlockStarts, block);
}

void MapTables::MakeStartSamples() {
  for (uint32_t block = 0; block < block_count_; block += kSampling) {
    const auto start = Load<uint32_t>(MapSectionId::kBlockStarts, block);
    if (start_samples_.size() % kSampling == 0) {
      start_top_samples_.push_back(start);
    }
    start_samples_.push_back(start);
  }
}

namespace {

// How many of kSampling 32-bit values, at any alignment, are at most `limit`.
// In vectors: a loop over the values takes longer than the rest of a search.
template <uint32_t kSampling>
uint32_t CountUpTo(const std::byte* values, uint32_t limit) {
  constexpr uint32_t kLanes = 4;
  using Lanes [[gnu::vector_size(kLanes * sizeof(uint32_t))]] = uint32_t;
  Lanes below = {};
  for (uint32_t i = 0; i < kSampling; i += kLanes) {
    Lanes some;
    std::memcpy(&some, values + i * sizeof(uint32_t), sizeof some);
    below -= reinterpret_cast<Lanes>(some <= limit);
  }
  return below[0] + below[1] + below[2] + below[3];
}

}  // namespace

uint32_t MapTables::LastUpTo(const std::byte* values, Span span,
                             uint32_t limit) {
  uint32_t low = span.begin;
  uint32_t count = span.end - span.begin;
  const auto value = [&](uint32_t i) {
    uint32_t loaded = 0;
    std::memcpy(&loaded, values + size_t{i} * sizeof loaded, sizeof loaded);
    return loaded;
  };
  if (count == kSampling) [[likely]] {
    // Without the first one, which need not be comparable.
    const uint32_t first = value(low) <= limit ? 1 : 0;
    return low - first +
           CountUpTo<kSampling>(values + size_t{low} * sizeof limit, limit);
  }
  while (count > 1) {
    const uint32_t half = count / 2;
    low += value(low + half) <= limit ? half : 0;
    count -= half;
  }
  return low;
}

// From samples, which stay in a near cache, to the one place they lead to.
uint32_t MapTables::FindInSegment(Span segment, uint32_t relative) const {
  const auto [first, end] = segment;
  // What stands before the segment's own blocks is relative to another base,
  // but the first of a span is never looked at.
  const auto narrow = [&](uint32_t found, uint32_t scale) -> Span {
    return {std::max(found * kSampling, first / scale),
            std::min((found + 1) * kSampling, (end - 1) / scale + 1)};
  };
  constexpr uint32_t kTop = kSampling * kSampling;
  const auto bytes_of = [](const std::vector<uint32_t>& samples) {
    return std::as_bytes(std::span(samples)).data();
  };
  const uint32_t top = LastUpTo(bytes_of(start_top_samples_),
                                {first / kTop, (end - 1) / kTop + 1}, relative);
  const uint32_t sample =
      LastUpTo(bytes_of(start_samples_), narrow(top, kSampling), relative);
  const Span blocks = narrow(sample, 1);
  __builtin_prefetch(map_.At(MapSectionId::kFineOffsets) +
                     size_t{blocks.begin} * header().fine_offset_bytes);
  return LastUpTo(map_.At(MapSectionId::kBlockStarts), blocks, relative);
}

MapTables::BlockPlace MapTables::FindBlock(uint64_t address) const {
  uint32_t segment = segment_count_;
  while (segment > 0 &&
         Load<MapSegment>(MapSectionId::kSegments, segment - 1).base >
             address) {
    --segment;
  }
  if (segment == 0 || block_count_ == 0) return {block_count_, 0, 0};
  const auto found = Load<MapSegment>(MapSectionId::kSegments, segment - 1);
  const uint64_t relative = std::min<uint64_t>(
      address - found.base, std::numeric_limits<uint32_t>::max());
  const uint32_t end =
      segment == segment_count_
          ? block_count_
          : Load<MapSegment>(MapSectionId::kSegments, segment).first_block;
  const uint32_t index =
      FindInSegment({found.first_block, end}, static_cast<uint32_t>(relative));
  const auto start = Load<uint32_t>(MapSectionId::kBlockStarts, index);
  // Usually the very next one starts later.
  if (index + 1 < end) [[likely]] {
    const auto next = Load<uint32_t>(MapSectionId::kBlockStarts, index + 1);
    if (next > start) [[likely]]
      return {index, found.base + start, found.base + next};
  }
  return {index, found.base + start, NextStart(index)};
}

uint32_t MapTables::FirstBlockOfStart(uint32_t block) const {
  const uint64_t start = BlockStart(block);
  uint32_t low = 0;
  uint32_t high = block;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (BlockStart(middle) < start) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

uint64_t MapTables::NextStart(uint32_t block) const {
  const uint64_t start = BlockStart(block);
  uint32_t low = block + 1;
  // Usually the very next one.
  if (low < block_count_ && BlockStart(low) > start) return BlockStart(low);
  uint32_t high = block_count_;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (BlockStart(middle) <= start) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < block_count_ ? BlockStart(low)
                            : std::numeric_limits<uint64_t>::max();
}

// Reads numbers one after another. Past the end of the stream it reads what is
// there.
struct MapTables::BitCursor {
  const std::byte* stream;
  uint64_t end;
  uint64_t bit;

  // 0 to 32 bits.
  uint32_t Take(unsigned count) {
    const uint32_t value = PeekBits(stream, std::min(bit, end), count);
    bit += count;
    return value;
  }
};

// Both chains of words at once, and without branches on what they are, which
// nothing predicts.
[[gnu::always_inline]] inline void MapTables::ReadHeads(
    uint32_t index, MapBlock& block, BlockHeads& heads) const {
  constexpr unsigned kRest = 64 - kMaxCodeBits;
  const uint64_t place = map_.BlockBit(index);
  const std::byte* at = map_.At(MapSectionId::kBlocks) + place / 8;
  uint64_t forward = LoadBigEndian(at);
  uint64_t backward = LoadBigEndian(at - kHeadBytes);
  block.continues = forward >> 63 != 0;
  forward <<= 1;
  uint32_t used = 1;
  uint32_t escapes = 0;
  uint64_t shared = 0;
#pragma GCC unroll 8
  for (uint32_t i = 0; i < kBlockEntries; ++i) {
    const auto entry = entry_code_.Decode(forward >> kRest);
    const auto name = name_code_.Decode(backward << kRest >> kRest);
    forward <<= entry.length;
    backward >>= name.length;
    const bool there = i < block.count;
    used += there ? entry.length : 0;
    heads.entries[i] = Load<uint16_t>(MapSectionId::kEntryValues, entry.rank);
    heads.names[i] = Load<uint16_t>(MapSectionId::kNameValues, name.rank);
    heads.deltas[i] = heads.entries[i] >> kEntryDeltaShift;
    heads.name_bits[i] = heads.names[i] >> kNameLengthShift;
    block.flags[i] = heads.entries[i] & (kEntryUpper | kEntryPrefixed);
    shared |= uint64_t{heads.names[i]} % (kNameSharedMask + 1) << 8 * i;
    block.explicit_types[i] = 0;
    escapes += there && heads.entries[i] == kEntryEscape ? 1 : 0;
    escapes += there && heads.names[i] == kNameEscape ? 1 : 0;
  }
  block.shared = shared;
  heads.end_bit = place + used;
  heads.escaped = escapes != 0;
}

bool MapTables::ReadEscapes(MapBlock& block, BlockHeads& heads) const {
  BitCursor bits = {map_.At(MapSectionId::kBlocks), map_.entry_bits(),
                    heads.end_bit};
  for (uint32_t i = 0; i < block.count; ++i) {
    if (heads.entries[i] == kEntryEscape &&
        !ReadEntryEscape(bits, block, heads, i)) {
      return false;
    }
    if (heads.names[i] != kNameEscape) continue;
    const uint64_t shared = bits.Take(kNameLengthShift);
    block.shared = (block.shared & ~(uint64_t{0xff} << 8 * i)) | shared
                                                                     << 8 * i;
    const uint32_t width = bits.Take(kNameEscapeWidthBits);
    if (width > 32) return false;
    heads.name_bits[i] = bits.Take(width);
  }
  heads.end_bit = bits.bit;
  return bits.bit <= map_.entry_bits();
}

bool MapTables::ReadEntryEscape(BitCursor& bits, MapBlock& block,
                                BlockHeads& heads, uint32_t position) {
  const uint32_t type = bits.Take(kEscapeTypeBits);
  const bool prefixed = bits.Take(1) != 0;
  const uint32_t width = bits.Take(kEscapeWidthBits);
  if (width > 64) return false;
  const unsigned high_bits = width > 32 ? width - 32 : 0;
  const unsigned low_bits = width - high_bits;
  const uint64_t high = bits.Take(high_bits);
  const uint64_t low = bits.Take(low_bits);
  heads.deltas[position] = (high << low_bits) | low;
  block.explicit_types[position] = static_cast<uint8_t>(type);
  block.flags[position] = static_cast<uint8_t>(
      (prefixed ? kEntryPrefixed : 0) | (type == 0 ? MapBlock::kGap : 0));
  return true;
}

[[gnu::always_inline]] inline void MapTables::PlaceEntries(
    const BlockHeads& heads, MapBlock& block) const {
  // The first one's group may begin in an earlier block.
  uint64_t address = block.starts[0];
  uint64_t start = address;
  uint8_t leader = 0;
  uint64_t bit = heads.end_bit;
#pragma GCC unroll 8
  for (uint32_t i = 0; i < kBlockEntries; ++i) {
    const uint64_t delta = heads.deltas[i];
    address += delta;
    block.addresses[i] = address;
    const bool leads = i != 0 && delta != 0;
    const uint64_t padding =
        (block.flags[i] & kEntryPrefixed) != 0 ? header().prefix_distance : 0;
    start = leads ? address - padding : start;
    leader = leads ? static_cast<uint8_t>(i) : leader;
    block.starts[i] = start;
    block.leaders[i] = leader;
    block.name_bits[i] = bit;
    bit += heads.name_bits[i];
  }
}

[[gnu::always_inline]] inline bool MapTables::ReadBlock(uint32_t index,
                                                        uint64_t start,
                                                        MapBlock& block) const {
  block.count =
      std::min(kBlockEntries, header().entry_count - index * kBlockEntries);
  block.starts[0] = start;
  BlockHeads heads;
  ReadHeads(index, block, heads);
  if (heads.escaped && !ReadEscapes(block, heads)) [[unlikely]]
    return false;
  PlaceEntries(heads, block);
  // What a name's end is, its tokens say.
  return block.name_bits[block.count - 1] <= map_.entry_bits();
}

inline void MapTables::StandAt(uint32_t position, MapEntry& entry) {
  entry.index = entry.index - entry.index % kBlockEntries + position;
  entry.address = entry.block.addresses[position];
  entry.explicit_type = entry.block.explicit_types[position];
  const uint8_t flags = entry.block.flags[position];
  entry.upper = (flags & kEntryUpper) != 0;
  entry.prefixed = (flags & kEntryPrefixed) != 0;
  entry.gap = (flags & MapBlock::kGap) != 0;
}

bool MapTables::ReadFirst(uint32_t block, MapEntry& entry) const {
  entry.index = block * kBlockEntries;
  if (!ReadBlock(block, BlockStart(block), entry.block)) return false;
  StandAt(0, entry);
  return true;
}

bool MapTables::ReadNext(MapEntry& entry) const {
  const uint32_t next = entry.index + 1;
  if (next == header().entry_count) return false;
  if (next % kBlockEntries == 0) return ReadFirst(next / kBlockEntries, entry);
  StandAt(next % kBlockEntries, entry);
  return true;
}

bool MapTables::FindInBlock(const BlockPlace& place, uint64_t address,
                            MapEntry& first, uint64_t& end) const {
  first.index = place.index * kBlockEntries;
  if (!ReadBlock(place.index, place.start, first.block)) return false;
  const auto& starts = first.block.starts;
  // They ascend. The first one is at or before the address.
  uint32_t last = 0;
  if (first.block.count == kBlockEntries) [[likely]] {
#pragma GCC unroll 8
    for (uint32_t i = 1; i < kBlockEntries; ++i) {
      last += starts[i] <= address ? 1 : 0;
    }
  } else {
    while (last + 1 < first.block.count && starts[last + 1] <= address) ++last;
  }
  first.block.starts[first.block.count] = place.next_start;
  end = starts[last + 1];
  StandAt(first.block.leaders[last], first);
  return true;
}

void MapTables::MakeRunHints() {
  const size_t runs = map_.CountOf<MapRun>(MapSectionId::kRuns);
  run_hints_.reserve((header().entry_count - 1) / kEntriesPerHint + 1);
  size_t run = 0;
  for (uint64_t i = 0; i < header().entry_count; i += kEntriesPerHint) {
    while (run + 1 < runs &&
           Load<MapRun>(MapSectionId::kRuns, run + 1).first_entry <= i) {
      ++run;
    }
    run_hints_.push_back(static_cast<uint32_t>(run));
  }
}

MapTables::Kind MapTables::KindOf(const MapEntryHead& entry) const {
  // The last run that starts at or before the entry: between two hints.
  const size_t hint = entry.index / kEntriesPerHint;
  size_t low = run_hints_[hint];
  const size_t end = hint + 1 < run_hints_.size()
                         ? run_hints_[hint + 1]
                         : map_.CountOf<MapRun>(MapSectionId::kRuns) - 1;
  while (low < end && Load<MapRun>(MapSectionId::kRuns, low + 1).first_entry <=
                          entry.index) {
    ++low;
  }
  const uint32_t packed =
      Load<MapRun>(MapSectionId::kRuns, low).module_and_letter;
  auto letter = static_cast<uint8_t>(packed & 0xff);
  // A letter of a run is a lower-case one, and a bit says so.
  const auto cased =
      static_cast<uint8_t>(letter - (entry.upper ? 'a' - 'A' : 0));
  letter = entry.explicit_type != 0 ? entry.explicit_type : cased;
  return {ModuleName(packed >> 8), static_cast<char>(letter)};
}

std::string_view MapTables::ModuleName(uint32_t module) const {
  const auto count = Load<uint32_t>(MapSectionId::kModules, 0);
  const auto names = map_.section(MapSectionId::kModules)
                         .subspan((1 + size_t{count}) * sizeof(uint32_t));
  // The count of module 0 is loaded too, to do without a branch.
  const auto before = Load<uint32_t>(MapSectionId::kModules, module);
  const uint32_t begin = before & -static_cast<uint32_t>(module != 0);
  const auto end = Load<uint32_t>(MapSectionId::kModules, size_t{module} + 1);
  return {reinterpret_cast<const char*>(names.data()) + begin, end - begin};
}

}  // namespace ksym
