// SPDX-License-Identifier: Apache-2.0
#include "tests/ksym/unwind/loaded_code.h"

#include <link.h>

#include <string>
#include <string_view>
#include <utility>

#include "ksym/process/vdso.h"
#include "tests/ksym/unwind/table_of.h"

namespace ksym {
namespace {

Result<UnwindTable> TableOfObject(std::string_view name) {
  if (name.starts_with("linux-vdso")) {
    return TableOf(ByteSource::OfMemory(OwnVdsoImage()));
  }
  return TableOfFile(name.empty() ? "/proc/self/exe" : std::string(name));
}

}  // namespace

LoadedCode::LoadedCode() {
  const auto add = [](dl_phdr_info* info, size_t, void* data) {
    auto& self = *static_cast<LoadedCode*>(data);
    auto table = TableOfObject(info->dlpi_name);
    if (!table) {
      ++self.failures_;
      return 0;
    }
    const auto shared = std::make_shared<const UnwindTable>(std::move(*table));
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& segment = info->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
      const uint64_t start = info->dlpi_addr + segment.p_vaddr;
      self.ranges_.push_back(
          {start, start + segment.p_memsz, info->dlpi_addr, shared});
    }
    return 0;
  };
  ::dl_iterate_phdr(add, this);
}

CodeAt LoadedCode::Find(Address address) const {
  for (const Range& range : ranges_) {
    if (address.value < range.start || address.value >= range.end) continue;
    return {CodeAt::Kind::kTable, range.table.get(), range.load_bias};
  }
  return {};
}

}  // namespace ksym
