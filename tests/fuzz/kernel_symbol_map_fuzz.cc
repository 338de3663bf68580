// SPDX-License-Identifier: Apache-2.0
// Any bytes as a compact map, with the checksum put right so that the checks
// behind it are reached: rejected, or every operation ends without a read
// outside of them.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "ksym/kernel/kernel_name_index.h"
#include "ksym/kernel/kernel_symbol_map.h"
#include "ksym/kernel/map_format.h"

namespace {

void Check(bool ok) {
  if (!ok) std::abort();
}

void CheckMap(const ksym::KernelSymbolMap& map) {
  constexpr ksym::SymbolQuery kEverything = {ksym::SymbolKinds::kAll,
                                             ksym::PrefixNames::kKeep};
  ksym::SymbolNameBuffer names;
  ksym::SymbolNameBuffer answers;
  size_t count = 0;
  map.ForEach(names, [&](const ksym::KernelSymbol& symbol) {
    ++count;
    const auto found = map.Find(symbol.start, answers, kEverything);
    if (symbol.size > 0) Check(found && found->start == symbol.start);
    map.FindAliases(symbol.start, answers,
                    [](const ksym::KernelSymbol&) { return true; });
    return true;
  });
  Check(count == map.symbol_count());
  const ksym::KernelNameIndex index(map);
  Check(index.Find(map, "do_fork") == map.FindByName("do_fork"));
  for (const uint64_t address :
       {uint64_t{0}, ~uint64_t{0}, uint64_t{1} << 63}) {
    map.Find(ksym::Address{address}, answers, kEverything);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  std::vector<std::byte> bytes(input.begin(), input.end());
  bytes.shrink_to_fit();
  if (size >= sizeof(ksym::MapHeader)) {
    const uint64_t length = size;
    std::memcpy(bytes.data() + offsetof(ksym::MapHeader, file_bytes), &length,
                sizeof length);
    const uint64_t sum = ksym::MapChecksum(bytes);
    std::memcpy(bytes.data() + offsetof(ksym::MapHeader, checksum), &sum,
                sizeof sum);
  }
  const auto map = ksym::KernelSymbolMap::Borrow(bytes);
  if (map) CheckMap(*map);
  return 0;
}
