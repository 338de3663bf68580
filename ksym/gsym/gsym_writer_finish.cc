// SPDX-License-Identifier: Apache-2.0
// The second half of GsymWriter: order and layout of the whole file.

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>

#include "ksym/gsym/gsym_writer.h"

namespace ksym {
namespace {

constexpr size_t kInfoAlignment = 4;
constexpr size_t kListEndBytes = 8;

constexpr uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace

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
  losses_.duplicates -= others.size();
  const auto copy = [&](const Encoded& from, size_t bytes) {
    // Appending may move the bytes that are appended.
    const auto part = encoded_.bytes().subspan(from.offset, bytes);
    encoded_.WriteBytes(std::vector<std::byte>(part.begin(), part.end()));
  };
  Encoded merged = functions_[first];
  merged.offset = encoded_.size();
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
