// SPDX-License-Identifier: Apache-2.0
#include "ksym/gsym/gsym_writer.h"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

namespace ksym {
namespace {

constexpr size_t kInfoAlignment = 4;
constexpr size_t kListEndBytes = 8;

constexpr uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Writes a type and a length, which is set when the value has been written.
class InfoScope {
 public:
  InfoScope(GsymInfo type, ByteWriter& out) : out_(out) {
    out_.Write(static_cast<uint32_t>(type));
    length_at_ = out_.size();
    out_.Write(uint32_t{0});
  }
  InfoScope(const InfoScope&) = delete;
  InfoScope& operator=(const InfoScope&) = delete;
  ~InfoScope() {
    out_.SetWord(length_at_,
                 static_cast<uint32_t>(out_.size() - length_at_ - 4));
  }

 private:
  ByteWriter& out_;
  size_t length_at_;
};

}  // namespace

GsymWriter::GsymWriter(const GsymWriterOptions& options)
    : options_(options),
      string_bytes_(options.version == GsymVersion::k1 ? 4 : 8),
      files_({{0, 0}}),
      encoded_(options.byte_order) {}

uint32_t GsymWriter::FileIndex(const FunctionBatch& batch, uint32_t index) {
  if (index >= batch.files.size()) return 0;
  const SourceFile& file = batch.files[index];
  if (file.directory.empty() && file.base.empty()) return 0;
  if (batch_files_[index] == 0) {
    const std::pair<uint64_t, uint64_t> key = {strings_.Add(file.directory),
                                               strings_.Add(file.base)};
    const auto next = static_cast<uint32_t>(files_.size());
    const auto [place, is_new] = file_ids_.emplace(key, next);
    if (is_new) files_.push_back(key);
    batch_files_[index] = place->second;
  }
  return batch_files_[index];
}

// A row of file 0 counts as none at all, and without a row there are no inlined
// calls either. So an unknown file is one with an empty path.
uint32_t GsymWriter::RowFile(const FunctionBatch& batch, uint32_t index) {
  const uint32_t known = FileIndex(batch, index);
  if (known != 0) return known;
  if (unknown_file_ == 0) {
    unknown_file_ = static_cast<uint32_t>(files_.size());
    files_.emplace_back(0, 0);
  }
  return unknown_file_;
}

void GsymWriter::Add(const FunctionBatch& batch,
                     std::span<const GsymCallSite> call_sites) {
  batch_files_.assign(batch.files.size(), 0);
  for (const FunctionInfo& function : batch.functions) {
    AddFunction(batch, function, call_sites);
    call_sites = {};
  }
}

void GsymWriter::AddFunction(const FunctionBatch& batch,
                             const FunctionInfo& function,
                             std::span<const GsymCallSite> call_sites) {
  const uint64_t size = function.range.end - function.range.start;
  if (function.range.end <= function.range.start ||
      size > std::numeric_limits<uint32_t>::max()) {
    ++losses_.empty_functions;
    return;
  }
  Encoded entry;
  entry.start = function.range.start;
  entry.size = static_cast<uint32_t>(size);
  entry.offset = encoded_.size();
  entry.name = strings_.Add(function.name);
  encoded_.Write(entry.size);
  encoded_.WriteSized(entry.name, string_bytes_);
  const size_t detail = encoded_.size();
  AddLines(batch, function);
  AddInlines(batch, function);
  // Before the call sites: they do not make a function the one to keep.
  entry.has_detail = encoded_.size() > detail;
  AddCallSites(call_sites);
  encoded_.Write(static_cast<uint32_t>(GsymInfo::kEnd));
  encoded_.Write(uint32_t{0});
  entry.bytes = static_cast<uint32_t>(encoded_.size() - entry.offset);
  functions_.push_back(entry);
}

void GsymWriter::AddLines(const FunctionBatch& batch,
                          const FunctionInfo& function) {
  rows_.clear();
  const auto rows =
      std::span(batch.lines).subspan(function.first_line, function.line_count);
  uint64_t next = function.range.start;
  for (LineRow row : rows) {
    if (row.address < next || row.address >= function.range.end) {
      // A line program only goes forward, and has one row for each address.
      ++losses_.rows;
      continue;
    }
    next = row.address + 1;
    row.file = RowFile(batch, row.file);
    // GSYM has no columns, so such a row says nothing new.
    if (!rows_.empty() && rows_.back().file == row.file &&
        rows_.back().line == row.line) {
      continue;
    }
    rows_.push_back(row);
  }
  if (rows_.empty()) return;
  const InfoScope scope(GsymInfo::kLineTable, encoded_);
  line_encoder_.Encode(function.range.start, rows_, encoded_);
}

void GsymWriter::WriteNode(const FunctionBatch& batch, const InlinedCall& call,
                           uint64_t base, bool has_children) {
  encoded_.WriteUleb128(call.range_count);
  for (uint32_t i = 0; i < call.range_count; ++i) {
    const AddressRange& range = batch.ranges[call.first_range + i];
    encoded_.WriteUleb128(range.start - base);
    encoded_.WriteUleb128(range.end - range.start);
  }
  encoded_.Write(static_cast<uint8_t>(has_children ? 1 : 0));
  WriteString(call.name);
  encoded_.WriteUleb128(FileIndex(batch, call.call_file));
  encoded_.WriteUleb128(call.call_line);
}

// The tree in preorder, below a node that stands for the function. bases_ has
// what the ranges at each depth count from.
void GsymWriter::AddInlines(const FunctionBatch& batch,
                            const FunctionInfo& function) {
  const auto calls = std::span(batch.inlines)
                         .subspan(function.first_inline, function.inline_count);
  if (calls.empty()) return;
  const InfoScope scope(GsymInfo::kInlines, encoded_);
  encoded_.WriteUleb128(1);
  encoded_.WriteUleb128(0);
  encoded_.WriteUleb128(function.range.end - function.range.start);
  encoded_.Write(uint8_t{1});
  WriteString(function.name);
  encoded_.WriteUleb128(0);
  encoded_.WriteUleb128(0);
  bases_.assign(1, function.range.start);
  // A node that cannot be encoded is left out with what is in it.
  size_t left_out_depth = calls.size() + 1;
  const auto fits = [&](const InlinedCall& call) {
    return call.depth >= 1 && call.depth <= bases_.size() &&
           call.depth <= left_out_depth && call.range_count > 0 &&
           batch.ranges[call.first_range].start >= bases_[call.depth - 1];
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    const InlinedCall& call = calls[i];
    if (!fits(call)) {
      ++losses_.inlined_calls;
      left_out_depth = std::min<size_t>(left_out_depth, call.depth);
      continue;
    }
    left_out_depth = calls.size() + 1;
    for (; bases_.size() > call.depth; bases_.pop_back()) {
      encoded_.WriteUleb128(0);
    }
    const bool has_children =
        i + 1 < calls.size() && calls[i + 1].depth > call.depth;
    WriteNode(batch, call, bases_.back(), has_children);
    if (has_children) bases_.push_back(batch.ranges[call.first_range].start);
  }
  for (size_t i = 0; i < bases_.size(); ++i) encoded_.WriteUleb128(0);
}

void GsymWriter::AddCallSites(std::span<const GsymCallSite> call_sites) {
  if (call_sites.empty()) return;
  const InfoScope scope(GsymInfo::kCallSites, encoded_);
  encoded_.Write(static_cast<uint32_t>(call_sites.size()));
  for (const GsymCallSite& site : call_sites) {
    encoded_.Write(site.return_offset);
    encoded_.Write(site.flags);
    encoded_.Write(static_cast<uint32_t>(site.patterns.size()));
    for (const std::string_view pattern : site.patterns) WriteString(pattern);
  }
}

// By address; of several with one start the smallest first, so that it is the
// answer where it reaches. Among those with the same code one with lines comes
// before one without, and then the order is that in which they were added:
// a linker keeps the first copy of code that several units have, and the
// others' debug data may say that the same bytes are something else.
void GsymWriter::SortAndMerge() {
  std::ranges::sort(functions_, {}, [](const Encoded& function) {
    return std::tuple(function.start, function.size, !function.has_detail,
                      function.offset);
  });
  size_t kept = 0;
  for (size_t i = 0; i < functions_.size();) {
    const size_t count = CountSame(i);
    if (count > 1 && options_.merge == GsymWriterOptions::Merge::kKeep) {
      AppendMerged(i, count);
    }
    losses_.duplicates += count - 1;
    functions_[kept++] = functions_[i];
    i += count;
  }
  functions_.resize(kept);
}

size_t GsymWriter::CountSame(size_t first) const {
  size_t end = first + 1;
  while (end < functions_.size() &&
         functions_[end].start == functions_[first].start &&
         functions_[end].size == functions_[first].size) {
    ++end;
  }
  return end - first;
}

// Encodes the first function anew, with those of the others that have another
// name in it.
void GsymWriter::AppendMerged(size_t first, size_t count) {
  std::vector<Encoded> others;
  for (size_t i = first + 1; i < first + count; ++i) {
    const auto has_name = [&](const Encoded& e) {
      return e.name == functions_[i].name;
    };
    if (!has_name(functions_[first]) &&
        std::ranges::none_of(others, has_name)) {
      others.push_back(functions_[i]);
    }
  }
  if (others.empty()) return;
  // They are kept after all; SortAndMerge() counts them with the rest.
  losses_.duplicates -= others.size();
  const auto copy = [&](const Encoded& from, size_t bytes) {
    // Appending may move the bytes that are appended.
    const auto part = encoded_.bytes().subspan(from.offset, bytes);
    encoded_.WriteBytes(std::vector<std::byte>(part.begin(), part.end()));
  };
  Encoded merged = functions_[first];
  merged.offset = encoded_.size();
  // Without the end of its list, as the merged ones join that. The old bytes
  // stay behind and are not written.
  copy(functions_[first], functions_[first].bytes - kListEndBytes);
  encoded_.Write(static_cast<uint32_t>(GsymInfo::kMergedFunctions));
  const size_t length_at = encoded_.size();
  encoded_.Write(uint32_t{0});
  encoded_.Write(static_cast<uint32_t>(others.size()));
  for (const Encoded& other : others) {
    encoded_.Write(other.bytes);
    copy(other, other.bytes);
  }
  encoded_.SetWord(length_at,
                   static_cast<uint32_t>(encoded_.size() - length_at - 4));
  encoded_.Write(static_cast<uint32_t>(GsymInfo::kEnd));
  encoded_.Write(uint32_t{0});
  merged.bytes = static_cast<uint32_t>(encoded_.size() - merged.offset);
  functions_[first] = merged;
}

Result<uint8_t> GsymWriter::AddressBytes() const {
  const uint64_t span =
      functions_.empty() ? 0 : functions_.back().start - functions_[0].start;
  uint8_t needed = 8;
  if (span <= std::numeric_limits<uint32_t>::max()) needed = 4;
  if (span <= std::numeric_limits<uint16_t>::max()) needed = 2;
  if (span <= std::numeric_limits<uint8_t>::max()) needed = 1;
  const uint8_t wanted = options_.address_bytes;
  if (wanted == 0) return needed;
  if (wanted < needed || (wanted & (wanted - 1)) != 0 || wanted > 8) {
    return Fail(ErrorCode::kInvalid,
                "GSYM: addresses need " + std::to_string(needed) +
                    " bytes, not " + std::to_string(wanted));
  }
  return wanted;
}

void GsymWriter::WriteAddresses(uint8_t address_bytes, ByteWriter& out) const {
  for (const Encoded& function : functions_) {
    out.WriteSized(function.start - functions_[0].start, address_bytes);
  }
}

void GsymWriter::WriteFiles(ByteWriter& out) const {
  out.Write(static_cast<uint32_t>(files_.size()));
  for (const auto& [directory, base] : files_) {
    out.WriteSized(directory, string_bytes_);
    out.WriteSized(base, string_bytes_);
  }
}

// Where each function's information will be, and behind them the end.
std::vector<uint64_t> GsymWriter::PlaceFunctions(uint64_t from) const {
  std::vector<uint64_t> places;
  places.reserve(functions_.size() + 1);
  for (const Encoded& function : functions_) {
    from = AlignUp(from, kInfoAlignment);
    places.push_back(from);
    from += function.bytes;
  }
  places.push_back(from);
  return places;
}

void GsymWriter::WriteFunctions(ByteWriter& out) const {
  for (const Encoded& function : functions_) {
    out.Align(kInfoAlignment);
    out.WriteBytes(encoded_.bytes().subspan(function.offset, function.bytes));
  }
}

Result<std::vector<std::byte>> GsymWriter::Finish1(std::string_view uuid,
                                                   uint8_t address_bytes) {
  const uint64_t count = functions_.size();
  const uint64_t addresses = AlignUp(kGsymHeaderBytes1, address_bytes);
  const uint64_t infos = AlignUp(addresses + count * address_bytes, 4);
  const uint64_t files = infos + count * 4;
  const uint64_t strings = files + 4 + files_.size() * 8;
  // Offsets have 32 bits in version 1.
  const auto places = PlaceFunctions(strings + strings_.bytes().size());
  if (places.back() > std::numeric_limits<uint32_t>::max()) {
    return Fail(ErrorCode::kLimit,
                "GSYM: " + std::to_string(places.back()) +
                    " bytes are more than version 1 can hold; use version 2");
  }
  ByteWriter out(options_.byte_order);
  out.Reserve(places.back());
  out.Write(kGsymMagic);
  out.Write(static_cast<uint16_t>(GsymVersion::k1));
  out.Write(address_bytes);
  out.Write(static_cast<uint8_t>(uuid.size()));
  out.Write(count == 0 ? uint64_t{0} : functions_[0].start);
  out.Write(static_cast<uint32_t>(count));
  out.Write(static_cast<uint32_t>(strings));
  out.Write(static_cast<uint32_t>(strings_.bytes().size()));
  out.WriteText(uuid);
  out.WriteText(std::string(kGsymMaxUuidBytes - uuid.size(), '\0'));
  out.Align(address_bytes);
  WriteAddresses(address_bytes, out);
  out.Align(4);
  for (size_t i = 0; i < count; ++i) {
    out.Write(static_cast<uint32_t>(places[i]));
  }
  WriteFiles(out);
  out.WriteText(strings_.bytes());
  WriteFunctions(out);
  return std::move(out).Take();
}

Result<std::vector<std::byte>> GsymWriter::Finish2(std::string_view uuid,
                                                   uint8_t address_bytes) {
  const uint64_t count = functions_.size();
  // In a fixed order, each aligned to its fields.
  const auto places = PlaceFunctions(0);
  struct Part {
    GsymSection type;
    uint64_t size;
    uint64_t alignment;
  };
  std::vector<Part> parts = {
      {GsymSection::kAddressOffsets, count * address_bytes, address_bytes},
      {GsymSection::kInfoOffsets, count * 8, 8},
      {GsymSection::kFiles, 4 + files_.size() * 16, 4},
      {GsymSection::kStrings, strings_.bytes().size(), 1},
      {GsymSection::kFunctions, places.back(), kInfoAlignment}};
  if (!uuid.empty()) parts.push_back({GsymSection::kUuid, uuid.size(), 1});
  ByteWriter out(options_.byte_order);
  out.Write(kGsymMagic);
  out.Write(static_cast<uint16_t>(GsymVersion::k2));
  out.Write(address_bytes);
  out.Write(uint8_t{0});  // string encoding
  out.Write(count == 0 ? uint64_t{0} : functions_[0].start);
  out.Write(static_cast<uint32_t>(count));
  uint64_t at = kGsymHeaderBytes2 + kGsymSectionEntryBytes * (parts.size() + 1);
  for (const Part& part : parts) {
    at = AlignUp(at, part.alignment);
    out.Write(static_cast<uint32_t>(part.type));
    out.Write(at);
    out.Write(part.size);
    at += part.size;
  }
  out.Reserve(at);
  // The entry of type kEnd, which ends the list.
  out.WriteText(std::string(kGsymSectionEntryBytes, '\0'));
  out.Align(address_bytes);
  WriteAddresses(address_bytes, out);
  out.Align(8);
  for (size_t i = 0; i < count; ++i) out.Write(places[i]);
  WriteFiles(out);
  out.WriteText(strings_.bytes());
  out.Align(kInfoAlignment);
  WriteFunctions(out);
  out.WriteText(uuid);
  return std::move(out).Take();
}

Result<std::vector<std::byte>> GsymWriter::Finish(std::string_view uuid) && {
  Losses losses;
  return std::move(*this).Finish(uuid, losses);
}

Result<std::vector<std::byte>> GsymWriter::Finish(std::string_view uuid,
                                                  Losses& losses) && {
  if (uuid.size() > kGsymMaxUuidBytes) {
    return Fail(ErrorCode::kInvalid, "GSYM: a uuid has at most 20 bytes, not " +
                                         std::to_string(uuid.size()));
  }
  // First: it adds to the losses, and the width of addresses follows from the
  // first and the last function.
  SortAndMerge();
  losses = losses_;
  const auto address_bytes = AddressBytes();
  if (!address_bytes) return Fail(address_bytes.error());
  if (functions_.size() > std::numeric_limits<uint32_t>::max()) {
    return Fail(ErrorCode::kLimit, "GSYM: too many functions");
  }
  return options_.version == GsymVersion::k1 ? Finish1(uuid, *address_bytes)
                                             : Finish2(uuid, *address_bytes);
}

}  // namespace ksym
