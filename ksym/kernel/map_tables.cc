#include "ksym/kernel/map_tables.h"

#include <algorithm>
#include <limits>

namespace ksym {

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
uint32_t MapTables::FindInSegment(uint32_t first, uint32_t end,
                                  uint32_t relative) const {
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
  __builtin_prefetch(
      pointers_[static_cast<size_t>(MapSectionId::kFineOffsets)] +
      size_t{blocks.begin} * header_.fine_offset_bytes);
  return LastUpTo(pointers_[static_cast<size_t>(MapSectionId::kBlockStarts)],
                  blocks, relative);
}

uint32_t MapTables::FindBlock(uint64_t address) const {
  uint32_t segment = segment_count_;
  while (segment > 0 &&
         Load<MapSegment>(MapSectionId::kSegments, segment - 1).base >
             address) {
    --segment;
  }
  if (segment == 0 || block_count_ == 0) return block_count_;
  const auto found = Load<MapSegment>(MapSectionId::kSegments, segment - 1);
  const uint64_t relative = address - found.base;
  const uint32_t end =
      segment == segment_count_
          ? block_count_
          : Load<MapSegment>(MapSectionId::kSegments, segment).first_block;
  if (relative > std::numeric_limits<uint32_t>::max()) return end - 1;
  return FindInSegment(found.first_block, end, static_cast<uint32_t>(relative));
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

uint64_t MapTables::BlockBit(uint32_t block) const {
  const uint64_t whole =
      Load<uint32_t>(MapSectionId::kWholeOffsets, block / kBlocksPerOffset);
  const uint64_t fine = header_.fine_offset_bytes == sizeof(uint16_t)
                            ? Load<uint16_t>(MapSectionId::kFineOffsets, block)
                            : Load<uint32_t>(MapSectionId::kFineOffsets, block);
  return (whole + fine) * 8;
}

// Reads words one after another: 57 bits come with one load and often have all
// of a block's. Past the end of the stream it reads what is there.
struct MapTables::BitCursor {
  const std::byte* stream;
  uint64_t end;
  uint64_t bit;  // of the window's first
  uint64_t window;
  unsigned left;  // bits of the window

  BitCursor(const std::byte* from, uint64_t at, uint64_t end_bit)
      : stream(from), end(end_bit) {
    GoTo(at);
  }

  void GoTo(uint64_t at) {
    bit = at;
    window = PeekBits57(stream, std::min(at, end));
    left = 57;
  }
  template <typename Decoder>
  [[gnu::always_inline]] uint32_t Take(const Decoder& decoder) {
    if (left < kMaxCodeBits) [[unlikely]]
      GoTo(bit);
    const auto word = decoder.Decode(static_cast<uint32_t>(window >> 32));
    Skip(word.length);
    return word.value;
  }
  // At most what is left.
  void Skip(unsigned count) {
    window <<= count;
    bit += count;
    left -= count;
  }
  // 0 to 32 bits. The window must be loaded anew.
  uint32_t TakeBits(unsigned count) {
    const uint32_t value = PeekBits(stream, std::min(bit, end), count);
    bit += count;
    return value;
  }
};

// Without branches on what the addresses are, which nothing predicts.
template <bool kWhole>
[[gnu::always_inline]] inline bool MapTables::ReadHeads(BitCursor& bits,
                                                        MapBlock& block) const {
  const uint32_t count = kWhole ? kBlockEntries : block.count;
  // The first one's group may begin in an earlier block.
  uint64_t address = block.starts[0];
  uint64_t start = address;
  uint8_t leader = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t previous = address;
    const uint32_t value = bits.Take(entry_code_);
    block.explicit_types[i] = 0;
    block.flags[i] = value & (kEntryUpper | kEntryPrefixed);
    if (value == kEntryEscape) [[unlikely]] {
      block.addresses[i] = address;
      // A copy, so that the cursor itself stays in registers.
      BitCursor escape = bits;
      if (!ReadEscape(escape, block, i)) return false;
      bits = escape;
      address = block.addresses[i];
    } else {
      address += value >> kEntryDeltaShift;
      block.addresses[i] = address;
    }
    const bool leads = i != 0 && address != previous;
    const uint64_t padding =
        (block.flags[i] & kEntryPrefixed) != 0 ? header_.prefix_distance : 0;
    start = leads ? address - padding : start;
    leader = leads ? static_cast<uint8_t>(i) : leader;
    block.starts[i] = start;
    block.leaders[i] = leader;
  }
  return true;
}

template <bool kWhole>
[[gnu::always_inline]] inline bool MapTables::ReadNameHeads(
    BitCursor& bits, MapBlock& block) const {
  const uint32_t count = kWhole ? kBlockEntries : block.count;
  // The lengths first: the names lie behind all of them.
  uint64_t place = 0;
  uint8_t shared = 0;
  for (uint32_t i = 0; i < count; ++i) {
    // The next name refers to the one before a gap.
    block.name_bits[i] = i == 0 ? 0 : block.name_bits[i - 1];
    block.shared[i] = shared;
    if ((block.flags[i] & MapBlock::kGap) != 0) [[unlikely]]
      continue;
    const uint32_t value = bits.Take(name_code_);
    uint64_t length = value >> kNameLengthShift;
    shared = value & kNameSharedMask;
    if (value == kNameEscape) [[unlikely]] {
      shared = static_cast<uint8_t>(bits.TakeBits(kNameLengthShift));
      length = bits.TakeBits(kNameEscapeLengthBits);
      bits.GoTo(bits.bit);
    }
    block.name_bits[i] = place;
    block.shared[i] = shared;
    place += length;
  }
  for (uint32_t i = 0; i < count; ++i) block.name_bits[i] += bits.bit;
  return bits.bit + place <= entry_bits_;
}

[[gnu::always_inline]] inline bool MapTables::ReadBlock(uint32_t index,
                                                        MapBlock& block) const {
  block.count =
      std::min(kBlockEntries, header_.entry_count - index * kBlockEntries);
  BitCursor bits(BlockStream(), BlockBit(index), entry_bits_);
  block.continues = bits.window >> 63 != 0;
  bits.Skip(1);
  block.starts[0] = BlockStart(index);
  if (block.count == kBlockEntries) [[likely]] {
    return ReadHeads<true>(bits, block) && ReadNameHeads<true>(bits, block);
  }
  return ReadHeads<false>(bits, block) && ReadNameHeads<false>(bits, block);
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
  if (!ReadBlock(block, entry.block)) return false;
  StandAt(0, entry);
  return true;
}

bool MapTables::ReadNext(MapEntry& entry) const {
  const uint32_t next = entry.index + 1;
  if (next == header_.entry_count) return false;
  if (next % kBlockEntries == 0) return ReadFirst(next / kBlockEntries, entry);
  StandAt(next % kBlockEntries, entry);
  return true;
}

bool MapTables::FindInBlock(uint32_t block, uint64_t address, MapEntry& first,
                            uint64_t& end) const {
  first.index = block * kBlockEntries;
  if (!ReadBlock(block, first.block)) return false;
  const auto& starts = first.block.starts;
  // They ascend. The first one is at or before the address.
  uint32_t last = 0;
  for (uint32_t i = 1; i < first.block.count; ++i) {
    last += starts[i] <= address ? 1 : 0;
  }
  end = last + 1 < first.block.count ? starts[last + 1] : NextStart(block);
  StandAt(first.block.leaders[last], first);
  return true;
}

bool MapTables::ReadEscape(BitCursor& bits, MapBlock& block,
                           uint32_t position) const {
  const uint32_t type = bits.TakeBits(kEscapeTypeBits);
  const bool prefixed = bits.TakeBits(1) != 0;
  const uint32_t width = bits.TakeBits(kEscapeWidthBits);
  if (width > 64 || bits.bit + width > entry_bits_) return false;
  const unsigned high_bits = width > 32 ? width - 32 : 0;
  const unsigned low_bits = width - high_bits;
  const uint64_t high = bits.TakeBits(high_bits);
  const uint64_t low = bits.TakeBits(low_bits);
  bits.GoTo(bits.bit);
  block.addresses[position] += (high << low_bits) | low;
  block.explicit_types[position] = static_cast<uint8_t>(type);
  block.flags[position] = static_cast<uint8_t>(
      (prefixed ? kEntryPrefixed : 0) | (type == 0 ? MapBlock::kGap : 0));
  return true;
}

void MapTables::MakeRunHints() {
  const size_t runs = CountOf<MapRun>(MapSectionId::kRuns);
  run_hints_.reserve((header_.entry_count - 1) / kEntriesPerHint + 1);
  size_t run = 0;
  for (uint64_t i = 0; i < header_.entry_count; i += kEntriesPerHint) {
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
                         : CountOf<MapRun>(MapSectionId::kRuns) - 1;
  while (low < end && Load<MapRun>(MapSectionId::kRuns, low + 1).first_entry <=
                          entry.index) {
    ++low;
  }
  const uint32_t packed =
      Load<MapRun>(MapSectionId::kRuns, low).module_and_letter;
  auto letter = static_cast<uint8_t>(packed & 0xff);
  if (entry.explicit_type != 0) {
    letter = entry.explicit_type;
  } else if (entry.upper) {
    letter = static_cast<uint8_t>(letter - 'a' + 'A');
  }
  return {ModuleName(packed >> 8), static_cast<char>(letter)};
}

std::string_view MapTables::ModuleName(uint32_t module) const {
  const auto count = Load<uint32_t>(MapSectionId::kModules, 0);
  const auto names = section(MapSectionId::kModules)
                         .subspan((1 + size_t{count}) * sizeof(uint32_t));
  const uint32_t begin =
      module == 0 ? 0 : Load<uint32_t>(MapSectionId::kModules, module);
  const auto end = Load<uint32_t>(MapSectionId::kModules, size_t{module} + 1);
  return {reinterpret_cast<const char*>(names.data()) + begin, end - begin};
}

}  // namespace ksym
