// SPDX-License-Identifier: Apache-2.0
// Any bytes as a symbol listing: reading never fails in another way than by an
// Error, and the map made of it answers for every symbol and passes its own
// checks.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ksym/base/file.h"
#include "ksym/base/unique_fd.h"
#include "ksym/kernel/kallsyms_reader.h"
#include "ksym/kernel/symbol_order.h"

namespace {

void Check(bool ok) {
  if (!ok) std::abort();
}

void CheckMap(const ksym::KernelSymbolMap& map) {
  Check(ksym::KernelSymbolMap::Borrow(map.bytes()).has_value());
  ksym::SymbolNameBuffer names;
  ksym::SymbolNameBuffer answers;
  size_t count = 0;
  ksym::Address previous;
  map.ForEach(names, [&](const ksym::KernelSymbol& symbol) {
    ++count;
    Check(!symbol.name.empty() && symbol.start >= previous);
    previous = symbol.start;
    if (symbol.size == 0 || !ksym::IsTextType(symbol.type)) return true;
    for (const uint64_t offset : {uint64_t{0}, symbol.size - 1}) {
      const auto found = map.Find(symbol.start + offset, answers);
      Check(found && found->start == symbol.start && found->offset == offset &&
            found->size == symbol.size);
    }
    return true;
  });
  Check(count == map.symbol_count());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ksym::UniqueFd fd(::memfd_create("kallsyms", MFD_CLOEXEC));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!ksym::WriteAll(fd.get(), text)) return 0;
  ::lseek(fd.get(), 0, SEEK_SET);
  ksym::KallsymsReport report;
  const auto map = ksym::LoadKallsyms(fd.get(), &report);
  Check(report.symbols + report.undefined + report.malformed == report.lines);
  if (map) CheckMap(*map);
  return 0;
}
