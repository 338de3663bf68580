#include "ksym/kernel/kernel_symbol_source.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/kernel/kallsyms_reader.h"
#include "ksym/kernel/map_format.h"

namespace ksym {
namespace {

bool StartsLikeAMap(int fd) {
  std::array<char, kMapMagic.size()> start = {};
  return ::pread(fd, start.data(), start.size(), 0) ==
             static_cast<ssize_t>(start.size()) &&
         start == kMapMagic;
}

Result<KernelSymbolMap> OpenAny(const std::string& path) {
  const auto fd = OpenForRead(path);
  if (!fd) return Fail(fd.error());
  if (StartsLikeAMap(fd->get())) return KernelSymbolMap::MapFile(path);
  return LoadKallsyms(fd->get());
}

}  // namespace

Result<KernelSymbolSource> KernelSymbolSource::FromBytes(
    std::vector<std::byte> bytes) {
  auto map = KernelSymbolMap::FromBytes(std::move(bytes));
  if (!map) return Fail(std::move(map.error()));
  return KernelSymbolSource(std::move(*map));
}

Result<KernelSymbolSource> OpenKernelSymbols(const std::string& path) {
  auto map = OpenAny(path);
  if (!map) return Fail(std::move(map.error()).WithContext(path));
  return KernelSymbolSource(std::move(*map));
}

}  // namespace ksym
