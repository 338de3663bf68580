// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/btf_reader.h"

#include <optional>

#include "ksym/base/file.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

template <typename T>
std::span<std::byte> Bytes(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

// Bytes that follow a btf_type of this kind, or nothing for a kind that is
// newer than this code and so cannot be stepped over.
std::optional<size_t> TrailingBytes(uint32_t info) {
  const size_t vlen = BTF_INFO_VLEN(info);
  switch (BTF_INFO_KIND(info)) {
    case BTF_KIND_PTR:
    case BTF_KIND_FWD:
    case BTF_KIND_TYPEDEF:
    case BTF_KIND_VOLATILE:
    case BTF_KIND_CONST:
    case BTF_KIND_RESTRICT:
    case BTF_KIND_FUNC:
    case BTF_KIND_FLOAT:
    case BTF_KIND_TYPE_TAG:
      return 0;
    case BTF_KIND_INT:
    case BTF_KIND_VAR:
    case BTF_KIND_DECL_TAG:
      return sizeof(uint32_t);
    case BTF_KIND_ARRAY:
      return sizeof(btf_array);
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
      return vlen * sizeof(btf_member);
    case BTF_KIND_ENUM:
      return vlen * sizeof(btf_enum);
    case BTF_KIND_FUNC_PROTO:
      return vlen * sizeof(btf_param);
    case BTF_KIND_DATASEC:
      return vlen * sizeof(btf_var_secinfo);
    case BTF_KIND_ENUM64:
      return vlen * 3 * sizeof(uint32_t);
    default:
      return std::nullopt;
  }
}

bool IsModifier(uint32_t kind) {
  return kind == BTF_KIND_TYPEDEF || kind == BTF_KIND_VOLATILE ||
         kind == BTF_KIND_CONST || kind == BTF_KIND_RESTRICT ||
         kind == BTF_KIND_TYPE_TAG;
}

}  // namespace

Status BtfSource::Read(uint64_t offset, std::span<std::byte> out) const {
  if (fd_ >= 0) return ksym::ReadExactlyAt(fd_, offset, out);
  if (offset > bytes_.size() || out.size() > bytes_.size() - offset) {
    return Fail(ErrorCode::kCorrupt, "BTF ends early");
  }
  std::memcpy(out.data(), bytes_.data() + offset, out.size());
  return {};
}

std::optional<std::span<const std::byte>> BtfSource::View(uint64_t offset,
                                                          uint64_t size) const {
  if (fd_ >= 0 || offset > bytes_.size() || size > bytes_.size() - offset) {
    return std::nullopt;
  }
  return bytes_.subspan(offset, size);
}

Result<BtfReader> BtfReader::Open(BtfSource source) {
  BtfReader reader(source);
  auto indexed = reader.Index();
  if (!indexed) return Fail(std::move(indexed.error()));
  return reader;
}

Result<btf_type> BtfReader::Type(uint32_t id) const {
  btf_type type = {};
  if (id == 0 || id >= size()) return Fail(ErrorCode::kCorrupt, "BTF id");
  auto read = source_.Read(types_begin_ + type_offsets_[id], Bytes(type));
  if (!read) return Fail(std::move(read.error()));
  return type;
}

Result<uint32_t> BtfReader::Resolve(uint32_t id) const {
  // A chain has a few typedefs and qualifiers; a circle has no end.
  for (int step = 0; step < 32; ++step) {
    if (id == 0) return 0;
    const auto type = Type(id);
    if (!type) return Fail(type.error());
    if (!IsModifier(BTF_INFO_KIND(type->info))) return id;
    id = type->type;
  }
  return Fail(ErrorCode::kCorrupt, "BTF typedefs in a circle");
}

Result<std::vector<BtfMember>> BtfReader::Members(uint32_t id) const {
  const auto type = Type(id);
  if (!type) return Fail(type.error());
  std::vector<btf_member> raw(BTF_INFO_VLEN(type->info));
  auto read = source_.Read(types_begin_ + type_offsets_[id] + sizeof(btf_type),
                           std::as_writable_bytes(std::span(raw)));
  if (!read) return Fail(std::move(read.error()));
  // With the flag an offset has the bitfield's size in its highest byte
  // (btf_member in linux/btf.h).
  const bool has_bitfields = BTF_INFO_KFLAG(type->info) != 0;
  std::vector<BtfMember> members;
  members.reserve(raw.size());
  for (const btf_member& m : raw) {
    members.push_back(
        {m.name_off, m.type,
         has_bitfields ? BTF_MEMBER_BIT_OFFSET(m.offset) : m.offset,
         has_bitfields ? BTF_MEMBER_BITFIELD_SIZE(m.offset) : 0});
  }
  return members;
}

Result<btf_array> BtfReader::Array(uint32_t id) const {
  btf_array array = {};
  auto read = source_.Read(types_begin_ + type_offsets_[id] + sizeof(btf_type),
                           Bytes(array));
  if (!read) return Fail(std::move(read.error()));
  return array;
}

Result<std::vector<uint32_t>> BtfReader::Parameters(uint32_t id) const {
  const auto type = Type(id);
  if (!type) return Fail(type.error());
  if (BTF_INFO_KIND(type->info) != BTF_KIND_FUNC_PROTO) {
    return Fail(ErrorCode::kCorrupt, "BTF: not a function");
  }
  std::vector<btf_param> raw(BTF_INFO_VLEN(type->info));
  auto read = source_.Read(types_begin_ + type_offsets_[id] + sizeof(btf_type),
                           std::as_writable_bytes(std::span(raw)));
  if (!read) return Fail(std::move(read.error()));
  std::vector<uint32_t> types;
  types.reserve(raw.size());
  for (const btf_param& parameter : raw) types.push_back(parameter.type);
  return types;
}

Result<std::vector<std::pair<uint32_t, uint32_t>>> BtfReader::Variables(
    uint32_t section) const {
  const auto type = Type(section);
  if (!type) return Fail(type.error());
  if (BTF_INFO_KIND(type->info) != BTF_KIND_DATASEC) {
    return Fail(ErrorCode::kCorrupt, "BTF: not a section");
  }
  std::vector<btf_var_secinfo> raw(BTF_INFO_VLEN(type->info));
  auto read =
      source_.Read(types_begin_ + type_offsets_[section] + sizeof(btf_type),
                   std::as_writable_bytes(std::span(raw)));
  if (!read) return Fail(std::move(read.error()));
  std::vector<std::pair<uint32_t, uint32_t>> variables;
  variables.reserve(raw.size());
  for (const btf_var_secinfo& one : raw) {
    variables.emplace_back(one.type, one.offset);
  }
  return variables;
}

Result<uint32_t> BtfReader::IntEncoding(uint32_t id) const {
  uint32_t word = 0;
  auto read = source_.Read(types_begin_ + type_offsets_[id] + sizeof(btf_type),
                           Bytes(word));
  if (!read) return Fail(std::move(read.error()));
  return word;
}

Status BtfReader::ReadHeader() {
  btf_header header = {};
  auto read = source_.Read(0, Bytes(header));
  if (!read) return read;
  if (header.magic != BTF_MAGIC || header.version != BTF_VERSION) {
    return Fail(ErrorCode::kUnsupported, "not BTF of version 1");
  }
  types_begin_ = uint64_t{header.hdr_len} + header.type_off;
  types_bytes_ = header.type_len;
  strings_begin_ = uint64_t{header.hdr_len} + header.str_off;
  strings_bytes_ = header.str_len;
  return {};
}

Status BtfReader::Index() {
  auto status = ReadHeader();
  if (!status) return status;
  type_offsets_.push_back(0);  // void
  if (const auto all = source_.View(types_begin_, types_bytes_)) {
    // Types have a member or parameter each, on average.
    type_offsets_.reserve(all->size() / (sizeof(btf_type) + sizeof(btf_param)));
    const auto used = IndexBlock(*all, 0);
    if (!used) return Fail(used.error());
    if (*used != types_bytes_)
      return Fail(ErrorCode::kCorrupt, "BTF type cut off");
    return {};
  }
  std::vector<std::byte> block(kBlockBytes);
  uint64_t offset = 0;
  while (offset < types_bytes_) {
    const size_t want = std::min<uint64_t>(block.size(), types_bytes_ - offset);
    status = source_.Read(types_begin_ + offset, std::span(block).first(want));
    if (!status) return status;
    // The next block begins with the type that this one cuts off.
    const auto used = IndexBlock(std::span(block).first(want), offset);
    if (!used) return Fail(used.error());
    if (*used == 0) return Fail(ErrorCode::kCorrupt, "BTF type cut off");
    offset += *used;
  }
  return {};
}

// Returns the bytes of the types whose fixed part lies within the block;
// more than the block has when the last one's members reach beyond it.
Result<uint64_t> BtfReader::IndexBlock(std::span<const std::byte> block,
                                       uint64_t offset) {
  uint64_t at = 0;
  while (at + sizeof(btf_type) <= block.size()) {
    btf_type type = {};
    std::memcpy(&type, block.data() + at, sizeof(type));
    const auto trailing = TrailingBytes(type.info);
    if (!trailing) {
      return Fail(ErrorCode::kUnsupported,
                  "BTF has a kind of type that is "
                  "newer than this program");
    }
    if (BTF_INFO_KIND(type.info) == BTF_KIND_STRUCT && type.name_off != 0) {
      structs_.emplace_back(type.name_off,
                            static_cast<uint32_t>(type_offsets_.size()));
    }
    type_offsets_.push_back(static_cast<uint32_t>(offset + at));
    at += sizeof(btf_type) + *trailing;
  }
  return at;
}

}  // namespace profd
