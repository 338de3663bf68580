// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/map_encoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "ksym/kernel/bit_stream.h"
#include "ksym/kernel/map_format.h"
#include "ksym/kernel/prefix_code.h"
#include "ksym/kernel/token_coder.h"
#include "ksym/kernel/value_coder.h"

namespace ksym {
namespace {

// Entries with another letter than their run, before a new run pays.
constexpr size_t kNewRunEntries = 3;
// Bytes of an entry's values in a kernel's table; to reserve the room at once.
constexpr size_t kTypicalEntryBytes = 2;

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
char ToLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

class MapEncoder {
 public:
  MapEncoder(MapRecords records, size_t symbol_count)
      : in_(std::move(records)), symbol_count_(symbol_count) {}

  Result<HeapBytes> Encode();

 private:
  // What is known of an entry before its words are.
  struct Plan {
    uint16_t value = kEntryEscape;
    uint16_t name_value = kNameEscape;
    uint8_t shared = 0;
    // A block's first entry has the address of the entry before it,
    // and the block starts with the padding of its first name.
    bool continues : 1 = false;
    bool padded : 1 = false;
  };

  Status MakePlans();
  void PlanAddresses();
  uint64_t DeltaOf(size_t i) const;
  void PlanNames();
  void PlanLengths();
  void MakeRuns();
  uint64_t NameBits(const Plan& plan, const MapRecord& record) const;
  bool NewRunPays(size_t index, char letter) const;
  void CodeValues();
  void WriteEscape(const MapRecord& record, uint64_t delta);
  void WriteNameEscape(const Plan& plan, const MapRecord& record);
  void WriteTokens(size_t begin, size_t end);
  // From entry to entry, and where a reader starts: bytes from the section's
  // first one.
  uint64_t WriteHeads(size_t begin, size_t end);
  uint64_t WriteBlock(size_t begin, size_t end);
  Status WriteBlocks();
  void AppendOffsets();
  void AppendAll();
  template <typename Items>
  void Append(MapSectionId id, const Items& items);
  void PadTo(size_t alignment);
  void AppendModules();

  MapRecords in_;
  size_t symbol_count_;
  std::vector<Plan> plans_;
  std::vector<uint32_t> block_starts_;
  std::vector<MapSegment> segments_;
  std::vector<MapRun> runs_;
  ValueCoder entry_code_;
  ValueCoder name_code_;
  TokenCoder token_code_;
  uint64_t name_bits_ = 0;
  BitWriter blocks_;
  std::vector<uint32_t> whole_offsets_;
  std::vector<uint32_t> fine_offsets_;
  MapHeader header_ = {};
  HeapBytes out_;
};

void MapEncoder::PlanAddresses() {
  const auto& records = in_.records;
  const auto start_of = [&](size_t i) {
    const bool prefixed = records[i].Has(MapRecord::kPrefixed);
    return records[i].address - (prefixed ? in_.prefix_distance : 0);
  };
  size_t group = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    if (records[i].address != records[group].address) group = i;
    if (i % kBlockEntries != 0) continue;
    plans_[i].continues = group != i;
    plans_[i].padded = records[group].Has(MapRecord::kPrefixed);
    const uint64_t start = start_of(group);
    if (segments_.empty() ||
        start - segments_.back().base > std::numeric_limits<uint32_t>::max()) {
      segments_.push_back({static_cast<uint32_t>(i / kBlockEntries), 0, start});
    }
    block_starts_.push_back(
        static_cast<uint32_t>(start - segments_.back().base));
  }
}

uint64_t MapEncoder::DeltaOf(size_t i) const {
  if (i % kBlockEntries == 0) return plans_[i].padded ? in_.prefix_distance : 0;
  return in_.records[i].address - in_.records[i - 1].address;
}

void MapEncoder::PlanNames() {
  const auto& records = in_.records;
  const MapRecord* before = nullptr;
  for (size_t i = 0; i < records.size(); ++i) {
    const MapRecord& record = records[i];
    if (i % kBlockEntries == 0) before = nullptr;
    if (record.Has(MapRecord::kGap)) {
      plans_[i].name_value = kNameOfGap;
      plans_[i].shared = kMaxShared;
      continue;
    }
    const uint32_t* tokens = in_.tokens.data() + record.first_token;
    uint32_t shared = 0;
    if (before != nullptr) {
      // The last token is never shared.
      const uint32_t* other = in_.tokens.data() + before->first_token;
      while (shared < kMaxShared && tokens[shared] == other[shared] &&
             (tokens[shared] & kLastToken) == 0) {
        ++shared;
      }
    }
    plans_[i].shared = static_cast<uint8_t>(shared);
    for (tokens += shared; (*tokens & kLastToken) == 0; ++tokens) {
      token_code_.Count(*tokens);
    }
    token_code_.Count(*tokens & ~kLastToken);
    before = &record;
  }
}

bool MapEncoder::NewRunPays(size_t index, char letter) const {
  const auto& records = in_.records;
  if (index + kNewRunEntries > records.size()) return false;
  const uint32_t module = records[index].module();
  return std::all_of(
      records.begin() + static_cast<ptrdiff_t>(index),
      records.begin() + static_cast<ptrdiff_t>(index) + kNewRunEntries,
      [&](const MapRecord& record) {
        return record.module() == module && ToLower(record.type()) == letter;
      });
}

void MapEncoder::MakeRuns() {
  const auto& records = in_.records;
  uint32_t module = 0;
  char letter = 't';
  runs_.push_back({0, static_cast<uint32_t>(letter)});
  for (size_t i = 0; i < records.size(); ++i) {
    const MapRecord& record = records[i];
    if (record.Has(MapRecord::kGap)) continue;
    const char own = ToLower(record.type());
    const bool other_letter = IsLetter(record.type()) && own != letter;
    if (record.module() != module || (other_letter && NewRunPays(i, own))) {
      module = record.module();
      if (other_letter) letter = own;
      if (runs_.back().first_entry == i) runs_.pop_back();
      runs_.push_back({static_cast<uint32_t>(i),
                       module << 8 | static_cast<uint8_t>(letter)});
    }
    if (own != letter || !IsLetter(record.type()) ||
        DeltaOf(i) > kMaxListedDelta) {
      continue;
    }
    const bool upper = record.type() != own;
    plans_[i].value = static_cast<uint16_t>(
        DeltaOf(i) << kEntryDeltaShift | (upper ? kEntryUpper : 0) |
        (record.Has(MapRecord::kPrefixed) ? kEntryPrefixed : 0));
  }
}

// The bits of the tokens that the name does not share.
uint64_t MapEncoder::NameBits(const Plan& plan, const MapRecord& record) const {
  const uint32_t* token = in_.tokens.data() + record.first_token + plan.shared;
  uint64_t bits = 0;
  for (; (*token & kLastToken) == 0; ++token) {
    bits += token_code_.code_length(*token);
  }
  return bits + token_code_.code_length(*token & ~kLastToken);
}

void MapEncoder::PlanLengths() {
  for (size_t i = 0; i < plans_.size(); ++i) {
    const MapRecord& record = in_.records[i];
    if (record.Has(MapRecord::kGap)) continue;
    Plan& plan = plans_[i];
    const uint64_t bits = NameBits(plan, record);
    name_bits_ += bits;
    if (bits > kMaxListedLength) continue;
    plan.name_value =
        static_cast<uint16_t>(bits << kNameLengthShift | plan.shared);
  }
}

void MapEncoder::CodeValues() {
  const auto code = [&](ValueCoder& coder, uint16_t Plan::* value,
                        uint16_t escape, BitOrder order) {
    for (const Plan& plan : plans_) coder.Count(plan.*value);
    const uint32_t least = coder.MinWeight();
    for (Plan& plan : plans_) {
      if (plan.*value == escape || coder.weight(plan.*value) >= least) continue;
      plan.*value = escape;
    }
    coder.EscapeBelow(least);
    coder.Finish(order);
  };
  code(entry_code_, &Plan::value, kEntryEscape, BitOrder::kHighestFirst);
  code(name_code_, &Plan::name_value, kNameEscape, BitOrder::kLowestFirst);
}

void MapEncoder::WriteEscape(const MapRecord& record, uint64_t delta) {
  const bool gap = record.Has(MapRecord::kGap);
  blocks_.Write(gap ? 0 : static_cast<uint8_t>(record.type()), kEscapeTypeBits);
  blocks_.Write(record.Has(MapRecord::kPrefixed) ? 1 : 0, 1);
  const auto width = static_cast<unsigned>(std::bit_width(delta));
  blocks_.Write(width, kEscapeWidthBits);
  const unsigned high_bits = width > 32 ? width - 32 : 0;
  if (high_bits > 0) {
    blocks_.Write(static_cast<uint32_t>(delta >> 32), high_bits);
  }
  blocks_.Write(static_cast<uint32_t>(delta), width - high_bits);
}

void MapEncoder::WriteNameEscape(const Plan& plan, const MapRecord& record) {
  blocks_.Write(plan.shared, kNameLengthShift);
  const bool gap = record.Has(MapRecord::kGap);
  const auto bits = gap ? 0 : static_cast<uint32_t>(NameBits(plan, record));
  const auto width = static_cast<unsigned>(std::bit_width(bits));
  blocks_.Write(width, kNameEscapeWidthBits);
  blocks_.Write(bits, width);
}

// The name values, the last one first and their bits turned round, as the code
// has them, so that they end with a byte: from there back they are in order.
// Then the others.
uint64_t MapEncoder::WriteHeads(size_t begin, size_t end) {
  unsigned bits = 0;
  for (size_t i = begin; i < end; ++i) {
    bits += name_code_.word(plans_[i].name_value).length;
  }
  blocks_.Write(0, -static_cast<unsigned>(blocks_.bit_count() + bits) % 8);
  const uint64_t place = (blocks_.bit_count() + bits) / 8 - sizeof(MapHeader);
  BitWriter::Burst burst(blocks_);
  for (size_t i = end; i-- > begin;) {
    const CodeWord word = name_code_.word(plans_[i].name_value);
    burst.Write(word.bits, word.length);
  }
  burst.Write(plans_[begin].continues ? 1 : 0, 1);
  for (size_t i = begin; i < end; ++i) {
    const CodeWord word = entry_code_.word(plans_[i].value);
    burst.Write(word.bits, word.length);
  }
  return place;
}

void MapEncoder::WriteTokens(size_t begin, size_t end) {
  BitWriter::Burst burst(blocks_);
  for (size_t i = begin; i < end; ++i) {
    const MapRecord& record = in_.records[i];
    if (record.Has(MapRecord::kGap)) continue;
    const uint32_t* token =
        in_.tokens.data() + record.first_token + plans_[i].shared;
    for (; (*token & kLastToken) == 0; ++token) {
      token_code_.Write(*token, burst);
    }
    token_code_.Write(*token & ~kLastToken, burst);
  }
}

uint64_t MapEncoder::WriteBlock(size_t begin, size_t end) {
  const uint64_t place = WriteHeads(begin, end);
  for (size_t i = begin; i < end; ++i) {
    if (plans_[i].value == kEntryEscape) {
      WriteEscape(in_.records[i], DeltaOf(i));
    }
    if (plans_[i].name_value == kNameEscape) {
      WriteNameEscape(plans_[i], in_.records[i]);
    }
  }
  WriteTokens(begin, end);
  return place;
}

Status MapEncoder::WriteBlocks() {
  // Into the place that the section has in the whole.
  blocks_ = BitWriter(std::move(in_.spare), sizeof(MapHeader));
  blocks_.Reserve(name_bits_ + 8 * kTypicalEntryBytes * plans_.size());
  for (size_t i = 0; i < kHeadBytes; ++i) blocks_.Write(0, 8);
  for (size_t i = 0; i < plans_.size(); i += kBlockEntries) {
    const uint64_t offset =
        WriteBlock(i, std::min<size_t>(i + kBlockEntries, plans_.size()));
    if (i / kBlockEntries % kBlocksPerOffset == 0) {
      whole_offsets_.push_back(static_cast<uint32_t>(offset));
    }
    fine_offsets_.push_back(static_cast<uint32_t>(offset) -
                            whole_offsets_.back());
  }
  blocks_.Align();
  for (size_t i = 0; i < kBitStreamPadding; ++i) blocks_.Write(0, 8);
  if (blocks_.byte_count() > std::numeric_limits<uint32_t>::max()) {
    return Fail(ErrorCode::kLimit, "more than 4 GiB of names");
  }
  return {};
}

void MapEncoder::AppendOffsets() {
  Append(MapSectionId::kWholeOffsets, whole_offsets_);
  const bool narrow = std::ranges::all_of(fine_offsets_, [](uint32_t offset) {
    return offset <= std::numeric_limits<uint16_t>::max();
  });
  header_.fine_offset_bytes = narrow ? sizeof(uint16_t) : sizeof(uint32_t);
  if (narrow) {
    Append(MapSectionId::kFineOffsets,
           std::vector<uint16_t>(fine_offsets_.begin(), fine_offsets_.end()));
  } else {
    Append(MapSectionId::kFineOffsets, fine_offsets_);
  }
}

template <typename Items>
void MapEncoder::Append(MapSectionId id, const Items& items) {
  const auto bytes = std::as_bytes(std::span(items));
  const size_t at = out_.size();
  header_.sections[static_cast<size_t>(id)] = {
      static_cast<uint32_t>(at), static_cast<uint32_t>(bytes.size())};
  out_.Resize(at + bytes.size());
  std::ranges::copy(bytes, out_.data() + at);
  PadTo(4);
}

// To a multiple of so many bytes.
void MapEncoder::PadTo(size_t alignment) {
  const size_t size = out_.size();
  out_.Resize((size + alignment - 1) / alignment * alignment);
  std::fill(out_.begin() + size, out_.end(), std::byte{0});
}

void MapEncoder::AppendModules() {
  std::vector<uint32_t> ends;
  std::string names;
  for (const std::string& module : in_.modules) {
    names += module;
    ends.push_back(static_cast<uint32_t>(names.size()));
  }
  const auto count = static_cast<uint32_t>(ends.size());
  std::vector<std::byte> section((1 + ends.size()) * sizeof(uint32_t) +
                                 names.size());
  std::memcpy(section.data(), &count, sizeof count);
  std::memcpy(section.data() + sizeof count, ends.data(),
              ends.size() * sizeof(uint32_t));
  std::memcpy(section.data() + (1 + ends.size()) * sizeof(uint32_t),
              names.data(), names.size());
  Append(MapSectionId::kModules, section);
}

Status MapEncoder::MakePlans() {
  plans_.resize(in_.records.size());
  PlanAddresses();
  MakeRuns();
  token_code_.Prepare(in_.interner);
  PlanNames();
  if (auto ok = token_code_.Finish(); !ok) return ok;
  {
    // Freed: assigning an empty one would make a table for it.
    const TokenInterner done = std::move(in_.interner);
  }
  // What a name takes is known once its tokens have their code, and how often
  // each length occurs once all have.
  PlanLengths();
  CodeValues();
  return {};
}

void MapEncoder::AppendAll() {
  out_ = std::move(blocks_).Take();
  header_.sections[static_cast<size_t>(MapSectionId::kBlocks)] = {
      sizeof(MapHeader),
      static_cast<uint32_t>(out_.size() - sizeof(MapHeader))};
  PadTo(4);
  AppendOffsets();
  Append(MapSectionId::kBlockStarts, block_starts_);
  Append(MapSectionId::kSegments, segments_);
  Append(MapSectionId::kRuns, runs_);
  AppendModules();
  Append(MapSectionId::kEntryValues, entry_code_.values());
  Append(MapSectionId::kNameValues, name_code_.values());
  Append(MapSectionId::kClasses, token_code_.classes());
  Append(MapSectionId::kCharacters, token_code_.characters());
  PadTo(8);
}

Result<HeapBytes> MapEncoder::Encode() {
  if (auto ok = MakePlans(); !ok) return Fail(ok.error());
  if (auto ok = WriteBlocks(); !ok) return Fail(ok.error());
  header_.entry_count = static_cast<uint32_t>(in_.records.size());
  // Freed before the whole is put together, which takes as much again.
  in_.records = {};
  in_.tokens = {};
  plans_ = {};
  AppendAll();

  header_.magic = kMapMagic;
  header_.version = kMapVersion;
  header_.byte_order = kMapByteOrder;
  header_.header_bytes = sizeof(MapHeader);
  header_.file_bytes = out_.size();
  header_.symbol_count = static_cast<uint32_t>(symbol_count_);
  header_.max_name_bytes = in_.max_name_bytes;
  header_.prefix_distance = in_.prefix_distance;
  header_.token_lengths = token_code_.counts();
  header_.entry_lengths = entry_code_.counts();
  header_.name_lengths = name_code_.counts();
  header_.alphabet = token_code_.alphabet();
  std::memcpy(out_.data(), &header_, sizeof header_);
  // It is of the whole file with 0 in its own field, so the header is written
  // twice.
  header_.checksum = MapChecksum(out_);
  std::memcpy(out_.data(), &header_, sizeof header_);
  return std::move(out_);
}

}  // namespace

Result<HeapBytes> EncodeMap(MapRecords records, size_t symbol_count) {
  return MapEncoder(std::move(records), symbol_count).Encode();
}

}  // namespace ksym
