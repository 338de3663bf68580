#include "ksym/kernel/map_tables.h"

#include <algorithm>
#include <limits>
#include <string>

namespace ksym {

// Where RenderToken appends.
struct MapTables::Rendering {
  char* out;
  size_t used = 0;
  size_t room;
  bool ended = false;
};

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
  // The last block of [low, end) that starts at or before; the segment's first
  // block starts at its base.
  uint32_t low = found.first_block;
  uint32_t count = end - low;
  while (count > 1) {
    const uint32_t half = count / 2;
    const auto start = Load<uint32_t>(MapSectionId::kBlockStarts, low + half);
    low += start <= relative ? half : 0;
    count -= half;
  }
  return low;
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

bool MapTables::ReadFirst(uint32_t block, MapEntry& entry) const {
  entry.index = block * kBlockEntries;
  entry.address = BlockStart(block);
  const uint64_t bit = BlockBit(block);
  entry.block_continues = PeekBits(BlockStream(), bit, 1) != 0;
  entry.next_bit = bit + 1;
  return ReadEntry(entry);
}

bool MapTables::ReadNext(MapEntry& entry) const {
  if (entry.index + 1 == header_.entry_count) return false;
  if ((entry.index + 1) % kBlockEntries == 0) {
    return ReadFirst((entry.index + 1) / kBlockEntries, entry);
  }
  ++entry.index;
  return ReadEntry(entry);
}

bool MapTables::ReadEntry(MapEntry& entry) const {
  if (entry.next_bit >= entry_bits_) return false;
  const uint32_t position = entry.index % kBlockEntries;
  const uint64_t window = PeekBits57(BlockStream(), entry.next_bit);
  const auto value = entry_code_.Decode(static_cast<uint32_t>(window >> 32));
  entry.next_bit += value.length;
  if (value.value == kEntryEscape) [[unlikely]] {
    if (!ReadEscape(entry)) return false;
    if (entry.gap) {
      // The next name refers to the one before the gap.
      entry.name_bits[position] =
          position == 0 ? entry.next_bit : entry.name_bits[position - 1];
      entry.shared[position] =
          position == 0 ? uint8_t{0} : entry.shared[position - 1];
      return true;
    }
    return ReadNameHead(entry, position,
                        PeekBits57(BlockStream(), entry.next_bit));
  }
  entry.explicit_type = 0;
  entry.gap = false;
  entry.upper = (value.value & kEntryUpper) != 0;
  entry.prefixed = (value.value & kEntryPrefixed) != 0;
  entry.address += value.value >> kEntryDeltaShift;
  return ReadNameHead(entry, position, window << value.length);
}

bool MapTables::ReadNameHead(MapEntry& entry, uint32_t position,
                             uint64_t window) const {
  const auto value = name_code_.Decode(static_cast<uint32_t>(window >> 32));
  uint64_t bit = entry.next_bit + value.length;
  uint32_t shared = value.value & kNameSharedMask;
  uint64_t length = value.value >> kNameLengthShift;
  if (value.value == kNameEscape) [[unlikely]] {
    shared = PeekBits(BlockStream(), bit, kNameLengthShift);
    bit += kNameLengthShift;
    length = PeekBits(BlockStream(), bit, kNameEscapeLengthBits);
    bit += kNameEscapeLengthBits;
  }
  entry.name_bits[position] = bit;
  entry.shared[position] = static_cast<uint8_t>(shared);
  entry.next_bit = bit + length;
  return entry.next_bit <= entry_bits_;
}

bool MapTables::ReadEscape(MapEntry& entry) const {
  const std::byte* stream = BlockStream();
  uint64_t bit = entry.next_bit;
  entry.explicit_type =
      static_cast<uint8_t>(PeekBits(stream, bit, kEscapeTypeBits));
  bit += kEscapeTypeBits;
  entry.prefixed = PeekBits(stream, bit, 1) != 0;
  bit += 1;
  const uint32_t width = PeekBits(stream, bit, kEscapeWidthBits);
  bit += kEscapeWidthBits;
  if (width > 64 || bit + width > entry_bits_) return false;
  const unsigned high_bits = width > 32 ? width - 32 : 0;
  const unsigned low_bits = width - high_bits;
  const uint64_t high = PeekBits(stream, bit, high_bits);
  const uint64_t low = PeekBits(stream, bit + high_bits, low_bits);
  entry.address += (high << low_bits) | low;
  entry.gap = entry.explicit_type == 0;
  entry.next_bit = bit + width;
  return true;
}

MapTables::Kind MapTables::KindOf(const MapEntry& entry) const {
  // The last run that starts at or before the entry.
  size_t low = 0;
  size_t count = CountOf<MapRun>(MapSectionId::kRuns);
  while (count > 1) {
    const size_t half = count / 2;
    const auto run = Load<MapRun>(MapSectionId::kRuns, low + half);
    low += run.first_entry <= entry.index ? half : 0;
    count -= half;
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

bool MapTables::RenderToken(uint32_t rank, Rendering& to) const {
  size_t at = Load<uint16_t>(MapSectionId::kClassIndex, ClassIndexSlot(rank));
  const size_t class_count = CountOf<TokenClass>(MapSectionId::kClasses);
  auto token_class = Load<TokenClass>(MapSectionId::kClasses, at);
  while (at + 1 < class_count) {
    const auto next = Load<TokenClass>(MapSectionId::kClasses, at + 1);
    if (next.first_rank > rank) break;
    token_class = next;
    ++at;
  }
  const size_t length = token_class.text_length;
  const std::string_view end = TokenEndText(token_class.end);
  if (to.room - to.used < length + end.size()) return false;
  const unsigned width = token_class.bits_per_char;
  uint64_t bit = token_class.first_bit +
                 uint64_t{rank - token_class.first_rank} * length * width;
  const std::byte* stream = pointers_[size_t(MapSectionId::kCharacters)];
  char* out = to.out + to.used;
  to.used += length + end.size();
  to.ended = token_class.end == TokenEnd::kEndOfName;
  if (width == 8) {
    for (size_t i = 0; i < length; ++i, bit += 8) {
      out[i] = static_cast<char>(PeekBits(stream, bit, 8));
    }
  } else {
    // Seven characters of five or six bits come with one load. Whole rounds
    // are written: name_room() has place for what is too much.
    const char* alphabet = header_.alphabet.data();
    for (size_t i = 0; i < length; i += 7, bit += 7 * width) {
      uint64_t window = PeekBits57(stream, bit);
      for (size_t c = 0; c < 7; ++c, window <<= width) {
        out[i + c] = alphabet[window >> (64 - width)];
      }
    }
  }
  // Two bytes always: a call of memcpy costs more than the rest.
  constexpr char kEnds[kTokenEndCount][2] = {
      {}, {}, {'_', 0}, {'.', 0}, {'_', '_'}};
  std::memcpy(out + length, kEnds[static_cast<size_t>(token_class.end)], 2);
  return true;
}

bool MapTables::RenderShared(const MapEntry& entry, Rendering& to) const {
  uint32_t position = entry.index % kBlockEntries;
  const uint32_t count = entry.shared[position];
  // Walks back through the block: of each name those tokens that this one has
  // from it and it does not itself have from an earlier one.
  std::array<uint32_t, kMaxShared> tokens;
  for (uint32_t wanted = count; wanted > 0;) {
    if (position == 0) return false;
    --position;
    uint64_t bit = entry.name_bits[position];
    for (uint32_t i = entry.shared[position]; i < wanted; ++i) {
      if (bit >= entry_bits_) return false;
      const auto word = token_code_.Decode(PeekBits32(BlockStream(), bit));
      bit += word.length;
      tokens[i] = word.rank;
    }
    wanted = std::min<uint32_t>(wanted, entry.shared[position]);
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (!RenderToken(tokens[i], to)) return false;
  }
  return true;
}

std::string_view MapTables::RenderName(const MapEntry& entry, char* out) const {
  Rendering to{.out = out, .room = header_.max_name_bytes};
  if (!RenderShared(entry, to)) return {};
  uint64_t bit = entry.name_bits[entry.index % kBlockEntries];
  do {
    if (bit >= entry_bits_) return {};
    const auto word = token_code_.Decode(PeekBits32(BlockStream(), bit));
    bit += word.length;
    if (!RenderToken(word.rank, to)) return {};
  } while (!to.ended);
  return {to.out, to.used};
}

}  // namespace ksym
