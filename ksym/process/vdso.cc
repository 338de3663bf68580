// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/vdso.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <cstdint>
#include <string_view>

#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace ksym {
namespace {

// The mapping's length is not in the auxiliary vector.
size_t MappedSize(uint64_t address) {
  const auto fd = OpenForRead("/proc/self/maps");
  if (!fd) return 0;
  size_t size = 0;
  const auto read = ForEachLine(fd->get(), [&](std::string_view line) {
    const auto start = ParseUnsigned(TakeField(line, '-'), 16);
    const auto end = ParseUnsigned(TakeField(line, ' '), 16);
    if (start != address || !end) return true;
    size = static_cast<size_t>(*end - *start);
    return false;
  });
  return read ? size : 0;
}

}  // namespace

std::string OwnVdsoImage() {
  const uint64_t address = ::getauxval(AT_SYSINFO_EHDR);
  const size_t size = address == 0 ? 0 : MappedSize(address);
  if (size == 0) return {};
  return std::string(reinterpret_cast<const char*>(address), size);
}

}  // namespace ksym
