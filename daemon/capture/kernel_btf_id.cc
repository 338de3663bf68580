// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/kernel_btf_id.h"

#include <linux/btf.h>

#include <optional>
#include <string>

#include "daemon/capture/btf_reader.h"
#include "ksym/base/file.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;

ksym::Result<uint32_t> FindFunction(const BtfReader& btf,
                                    std::string_view name) {
  std::optional<uint32_t> offset;
  auto read = btf.ForEachString([&](uint32_t at, std::string_view text) {
    if (text == name) offset = at;
  });
  if (!read) return Fail(std::move(read.error()));
  for (uint32_t id = 1; offset && id < btf.size(); ++id) {
    const auto type = btf.Type(id);
    if (!type) return Fail(type.error());
    if (type->name_off == *offset &&
        BTF_INFO_KIND(type->info) == BTF_KIND_FUNC) {
      return id;
    }
  }
  return Fail(ErrorCode::kNotFound,
              "the kernel has no function " + std::string(name));
}

}  // namespace

ksym::Result<uint32_t> KernelBtfFunction(std::string_view name) {
  constexpr char kPath[] = "/sys/kernel/btf/vmlinux";
  // Safe to map: nobody can truncate it.
  const auto mapped = ksym::MappedFile::Open(kPath);
  std::string bytes;
  if (!mapped) {
    constexpr size_t kMaxBytes = size_t{64} << 20;
    auto read = ksym::ReadFile(kPath, kMaxBytes);
    if (!read) return Fail(std::move(read.error()));
    bytes = std::move(*read);
  }
  const auto btf = BtfReader::Open(BtfSource(
      mapped ? mapped->bytes() : std::as_bytes(std::span<const char>(bytes))));
  if (!btf) return Fail(btf.error());
  return FindFunction(*btf, name);
}

}  // namespace profd
