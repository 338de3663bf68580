// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/kernel_name_index.h"

#include <algorithm>

#include "ksym/base/keyed_hash.h"

namespace ksym {

KernelNameIndex::KernelNameIndex(const KernelSymbolMap& map) {
  items_.reserve(map.symbol_count());
  SymbolNameBuffer buffer;
  map.ForEach(buffer, [&](const KernelSymbol& symbol) {
    items_.push_back({HashText(symbol.name), symbol.start.value});
    return true;
  });
  std::ranges::sort(items_);
}

std::vector<Address> KernelNameIndex::Find(const KernelSymbolMap& map,
                                           std::string_view name) const {
  const uint64_t hash = HashText(name);
  std::vector<Address> found;
  SymbolNameBuffer buffer;
  auto at = std::ranges::lower_bound(items_, hash, {}, &Item::hash);
  for (; at != items_.end() && at->hash == hash; ++at) {
    // Symbols of one name and address are neighbours and visited together.
    if (!found.empty() && found.back().value == at->address) continue;
    map.VisitAt(Address{at->address}, buffer, [&](const KernelSymbol& symbol) {
      if (symbol.name == name) found.push_back(symbol.start);
      return true;
    });
  }
  return found;
}

}  // namespace ksym
