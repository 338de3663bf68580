// SPDX-License-Identifier: Apache-2.0
#include "ksym/gsym/gsym_file.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace ksym {
namespace {

std::unexpected<Error> Corrupt(std::string what) {
  return Fail(ErrorCode::kCorrupt, "GSYM: " + std::move(what));
}

constexpr size_t AlignUp(size_t value, size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

bool IsAddressSize(uint8_t size) {
  return size == 1 || size == 2 || size == 4 || size == 8;
}

// The part [offset, offset + size), or nothing when it is not there.
std::optional<std::span<const std::byte>> Part(std::span<const std::byte> bytes,
                                               uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) {
    return std::nullopt;
  }
  return bytes.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
}

}  // namespace

uint64_t GsymFile::AddressOffset(uint32_t index) const {
  ByteCursor in = Cursor(address_offsets_);
  in.Skip(uint64_t{index} * address_bytes_);
  return in.ReadSized(address_bytes_);
}

uint64_t GsymFile::InfoOffset(uint32_t index) const {
  ByteCursor in = Cursor(info_offsets_);
  in.Skip(uint64_t{index} * info_offset_bytes_);
  return in.ReadSized(info_offset_bytes_);
}

ByteCursor GsymFile::FunctionBytes(uint32_t index) const {
  return Cursor(functions_.subspan(static_cast<size_t>(InfoOffset(index))));
}

Status GsymFile::SetFiles(std::span<const std::byte> bytes) {
  ByteCursor in = Cursor(bytes);
  file_count_ = in.Read<uint32_t>();
  if (!in.ok()) return Corrupt("no file table");
  const auto files =
      Part(bytes, in.offset(), uint64_t{file_count_} * 2 * string_bytes_);
  if (!files) {
    return Corrupt("a file table of " + std::to_string(file_count_) +
                   " files does not fit");
  }
  files_ = *files;
  return {};
}

// Version 1: the tables follow each other, aligned to their fields.
Status GsymFile::PlaceTables1(size_t strings_offset, size_t strings_size) {
  size_t at = AlignUp(kGsymHeaderBytes1, address_bytes_);
  const auto addresses = Part(bytes_, at, uint64_t{count_} * address_bytes_);
  if (!addresses) return Corrupt("the address table does not fit");
  address_offsets_ = *addresses;
  at = AlignUp(at + addresses->size(), 4);
  const auto infos = Part(bytes_, at, uint64_t{count_} * 4);
  if (!infos) return Corrupt("the table of information offsets does not fit");
  info_offsets_ = *infos;
  at += infos->size();
  const auto strings = Part(bytes_, strings_offset, strings_size);
  if (!strings) return Corrupt("the string table does not fit");
  strings_ = *strings;
  // In version 1 the places of information count from the file's start.
  functions_ = bytes_;
  return SetFiles(bytes_.subspan(at));
}

Status GsymFile::ParseHeader1(ByteCursor in) {
  address_bytes_ = in.Read<uint8_t>();
  const auto uuid_size = in.Read<uint8_t>();
  base_address_ = in.Read<uint64_t>();
  count_ = in.Read<uint32_t>();
  const auto strings_offset = in.Read<uint32_t>();
  const auto strings_size = in.Read<uint32_t>();
  const auto uuid = in.ReadBytes(kGsymMaxUuidBytes);
  if (!in.ok()) return Corrupt("the header is cut off");
  if (!IsAddressSize(address_bytes_)) {
    return Corrupt("addresses of " + std::to_string(address_bytes_) + " bytes");
  }
  if (uuid_size > kGsymMaxUuidBytes) {
    return Corrupt("a uuid of " + std::to_string(uuid_size) + " bytes");
  }
  uuid_ = {reinterpret_cast<const char*>(uuid.data()), uuid_size};
  return PlaceTables1(strings_offset, strings_size);
}

Status GsymFile::PlaceSection(GsymSection type,
                              std::span<const std::byte> bytes) {
  switch (type) {
    case GsymSection::kAddressOffsets:
      address_offsets_ = bytes;
      break;
    case GsymSection::kInfoOffsets:
      info_offsets_ = bytes;
      break;
    case GsymSection::kStrings:
      strings_ = bytes;
      break;
    case GsymSection::kFiles:
      return SetFiles(bytes);
    case GsymSection::kFunctions:
      functions_ = bytes;
      break;
    case GsymSection::kUuid:
      uuid_ = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
      break;
    default:  // a section of a later version
      break;
  }
  return {};
}

Status GsymFile::ParseHeader2(ByteCursor in) {
  info_offset_bytes_ = 8;
  string_bytes_ = 8;
  address_bytes_ = in.Read<uint8_t>();
  const auto string_encoding = in.Read<uint8_t>();
  base_address_ = in.Read<uint64_t>();
  count_ = in.Read<uint32_t>();
  if (in.ok() && string_encoding != 0) {
    return Fail(ErrorCode::kUnsupported, "GSYM: string encoding " +
                                             std::to_string(string_encoding) +
                                             " is not known");
  }
  while (in.ok()) {
    const auto type = static_cast<GsymSection>(in.Read<uint32_t>());
    const auto offset = in.Read<uint64_t>();
    const auto size = in.Read<uint64_t>();
    if (!in.ok() || type == GsymSection::kEnd) break;
    const auto part = Part(bytes_, offset, size);
    if (!part) {
      return Corrupt("section " + std::to_string(static_cast<uint32_t>(type)) +
                     " does not fit");
    }
    const auto placed = PlaceSection(type, *part);
    if (!placed) return placed;
  }
  if (!in.ok()) return Corrupt("the list of sections is cut off");
  if (!IsAddressSize(address_bytes_)) {
    return Corrupt("addresses of " + std::to_string(address_bytes_) + " bytes");
  }
  if (address_offsets_.size() / address_bytes_ < count_ ||
      info_offsets_.size() / info_offset_bytes_ < count_) {
    return Corrupt("the address tables are too short");
  }
  return {};
}

// Walks the list of a function's information to its end.
Status GsymFile::CheckLastInfo(uint64_t offset) const {
  ByteCursor in = Cursor(functions_.subspan(static_cast<size_t>(offset)));
  in.Skip(sizeof(uint32_t) + string_bytes_);
  while (in.ok()) {
    const auto type = static_cast<GsymInfo>(in.Read<uint32_t>());
    in.Skip(in.Read<uint32_t>());
    if (in.ok() && type == GsymInfo::kEnd) return {};
  }
  return Corrupt("the last function's information is cut off");
}

Status GsymFile::CheckTables() const {
  // Then each offset in the table has a text that ends, and none has to be
  // checked again when it is read.
  if (strings_.empty() || strings_.front() != std::byte{0} ||
      strings_.back() != std::byte{0}) {
    return Corrupt("the string table does not begin and end with NUL");
  }
  if (count_ == 0) return {};
  ByteCursor addresses = Cursor(address_offsets_);
  ByteCursor infos = Cursor(info_offsets_);
  uint64_t last_address = 0;
  uint64_t last_info = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    const uint64_t address = addresses.ReadSized(address_bytes_);
    const uint64_t info = infos.ReadSized(info_offset_bytes_);
    // Equal ones are good: functions that start together have different ends.
    if (address < last_address) return Corrupt("addresses do not rise");
    if (info >= functions_.size()) {
      return Corrupt("a function's information is not in the file");
    }
    last_address = address;
    // The one that is last in the file, which need not be that of the last
    // function.
    last_info = std::max(last_info, info);
  }
  return CheckLastInfo(last_info);
}

Result<GsymFile> GsymFile::Parse(std::span<const std::byte> bytes) {
  GsymFile file;
  file.bytes_ = bytes;
  const auto magic = ByteCursor(bytes).Read<uint32_t>();
  // Files are read where they were not made, also on machines of the other byte
  // order.
  if (magic == __builtin_bswap32(kGsymMagic)) {
    file.order_ = std::endian::big;
  } else if (magic != kGsymMagic) {
    return Fail(ErrorCode::kUnsupported, "not a GSYM file");
  }
  ByteCursor in = file.Cursor(bytes);
  in.Skip(sizeof(uint32_t));
  const auto version = in.Read<uint16_t>();
  file.version_ = static_cast<GsymVersion>(version);
  Status parsed;
  if (version == 1) {
    parsed = file.ParseHeader1(in);
  } else if (version == 2) {
    parsed = file.ParseHeader2(in);
  } else {
    return Fail(ErrorCode::kUnsupported,
                "GSYM: version " + std::to_string(version) + " is not known");
  }
  if (parsed) parsed = file.CheckTables();
  if (!parsed) return Fail(std::move(parsed.error()));
  return file;
}

uint32_t GsymFile::CountStartsUpTo(uint64_t offset) const {
  uint32_t low = 0;
  uint32_t high = count_;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (AddressOffset(middle) <= offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

std::optional<uint32_t> GsymFile::FindLastStart(ElfAddress address) const {
  if (address.value < base_address_) return std::nullopt;
  const uint32_t count = CountStartsUpTo(address.value - base_address_);
  if (count == 0) return std::nullopt;
  const uint64_t start = AddressOffset(count - 1);
  if (count == 1 || AddressOffset(count - 2) != start) return count - 1;
  // Others start there too: the first of them is the smallest, which is asked
  // before those around it.
  return start == 0 ? 0 : CountStartsUpTo(start - 1);
}

std::optional<std::string_view> GsymFile::String(uint64_t offset) const {
  if (!HasString(offset)) return std::nullopt;
  // The table ends with NUL.
  return std::string_view(reinterpret_cast<const char*>(strings_.data()) +
                          offset);
}

std::optional<GsymFile::Path> GsymFile::FindPath(uint64_t index) const {
  if (index >= file_count_) return std::nullopt;
  ByteCursor in = Cursor(files_);
  in.Skip(index * 2 * string_bytes_);
  const uint64_t directory = in.ReadSized(string_bytes_);
  const uint64_t base = in.ReadSized(string_bytes_);
  if (!HasString(directory) || !HasString(base)) return std::nullopt;
  return Path{directory, base};
}

std::optional<GsymFile::File> GsymFile::FindFile(uint64_t index) const {
  const auto path = FindPath(index);
  if (!path) return std::nullopt;
  return File{String(path->directory).value_or(""),
              String(path->base).value_or("")};
}

}  // namespace ksym
