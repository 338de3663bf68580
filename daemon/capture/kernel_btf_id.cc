// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/kernel_btf_id.h"

#include <linux/btf.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "ksym/base/file.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;

// Nameless structs in each other.
constexpr int kMaxNested = 4;

// Bits before the member; nothing: it is not in there.
std::optional<uint32_t> FindMember(const BtfReader& reader, uint32_t id,
                                   uint32_t name, int nested) {
  const auto resolved = reader.Resolve(id);
  if (!resolved) return std::nullopt;
  const auto type = reader.Type(*resolved);
  if (!type || (BTF_INFO_KIND(type->info) != BTF_KIND_STRUCT &&
                BTF_INFO_KIND(type->info) != BTF_KIND_UNION)) {
    return std::nullopt;
  }
  const auto members = reader.Members(*resolved);
  if (!members) return std::nullopt;
  for (const BtfMember& member : *members) {
    if (member.name == name) return member.bit_offset;
    if (member.name != 0 || nested == kMaxNested) continue;
    const auto within = FindMember(reader, member.type, name, nested + 1);
    if (within) return member.bit_offset + *within;
  }
  return std::nullopt;
}

}  // namespace

// The bytes that the reader borrows. A BTF that cannot be mapped is read.
struct KernelBtf::Bytes {
  std::optional<ksym::MappedFile> mapped;
  std::string read;
};

KernelBtf::KernelBtf(std::unique_ptr<Bytes> bytes, BtfReader reader)
    : bytes_(std::move(bytes)), reader_(std::move(reader)) {}
KernelBtf::KernelBtf(KernelBtf&&) noexcept = default;
KernelBtf& KernelBtf::operator=(KernelBtf&&) noexcept = default;
KernelBtf::~KernelBtf() = default;

ksym::Result<KernelBtf> KernelBtf::Open() {
  constexpr char kPath[] = "/sys/kernel/btf/vmlinux";
  auto bytes = std::make_unique<Bytes>();
  std::span<const std::byte> all;
  // Safe to map: nobody can truncate it.
  if (auto mapped = ksym::MappedFile::Open(kPath)) {
    all = bytes->mapped.emplace(std::move(*mapped)).bytes();
  } else {
    constexpr size_t kMaxBytes = size_t{64} << 20;
    auto read = ksym::ReadFile(kPath, kMaxBytes);
    if (!read) return Fail(std::move(read.error()));
    bytes->read = std::move(*read);
    all = std::as_bytes(std::span<const char>(bytes->read));
  }
  auto reader = BtfReader::Open(BtfSource(all));
  if (!reader) return Fail(std::move(reader.error()));
  return KernelBtf(std::move(bytes), std::move(*reader));
}

ksym::Result<std::vector<uint32_t>> KernelBtf::Find(
    std::span<const Name> names) const {
  std::vector<uint32_t> ids(names.size());
  std::vector<uint32_t> offsets(names.size());
  // The strings first: types are then compared by a number and not by a name.
  auto read = reader_.ForEachString([&](uint32_t at, std::string_view text) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (text == names[i].name) offsets[i] = at;
    }
  });
  if (!read) return Fail(std::move(read.error()));
  size_t left = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].kind == 0) {
      // Any number says that the kernel has the name.
      ids[i] = offsets[i];
    } else if (offsets[i] != 0) {
      ++left;
    }
  }
  for (uint32_t id = 1; left > 0 && id < reader_.size(); ++id) {
    const auto type = reader_.Type(id);
    if (!type) return Fail(type.error());
    if (type->name_off == 0) continue;
    for (size_t i = 0; i < names.size(); ++i) {
      if (offsets[i] != type->name_off || ids[i] != 0 ||
          BTF_INFO_KIND(type->info) != names[i].kind) {
        continue;
      }
      ids[i] = id;
      --left;
    }
  }
  return ids;
}

ksym::Result<std::vector<uint32_t>> KernelBtf::ParameterKinds(
    uint32_t id) const {
  std::vector<uint32_t> kinds;
  auto type = reader_.Type(id);
  if (type) type = reader_.Type(type->type);  // the pointer to the function
  if (type) id = type->type;
  const auto parameters = reader_.Parameters(id);
  if (!type || !parameters) return Fail(ErrorCode::kCorrupt, "BTF function");
  for (const uint32_t parameter : *parameters) {
    const auto resolved = reader_.Resolve(parameter);
    if (!resolved) return Fail(resolved.error());
    const auto of = reader_.Type(*resolved);
    if (!of) return Fail(of.error());
    kinds.push_back(BTF_INFO_KIND(of->info));
  }
  return kinds;
}

ksym::Result<uint32_t> KernelBtf::OffsetInSection(uint32_t section,
                                                  uint32_t variable) const {
  const auto variables = reader_.Variables(section);
  if (!variables) return Fail(variables.error());
  for (const auto& [number, offset] : *variables) {
    if (number == variable) return offset;
  }
  return Fail(ErrorCode::kNotFound, "BTF: no such variable");
}

ksym::Result<uint32_t> KernelBtf::MemberOffset(uint32_t struct_id,
                                               uint32_t name) const {
  const auto bits = FindMember(reader_, struct_id, name, 0);
  if (bits) return *bits / 8;
  return Fail(ErrorCode::kNotFound, "BTF: no such member");
}

ksym::Result<uint32_t> KernelBtfFunction(std::string_view name) {
  const auto btf = KernelBtf::Open();
  if (!btf) return Fail(btf.error());
  const KernelBtf::Name wanted[] = {{BTF_KIND_FUNC, name}};
  const auto ids = btf->Find(wanted);
  if (!ids) return Fail(ids.error());
  if (ids->front() != 0) return ids->front();
  return Fail(ErrorCode::kNotFound,
              "the kernel has no function " + std::string(name));
}

}  // namespace profd
