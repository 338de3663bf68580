// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/kernel/kernel_symbol_map.h"

namespace ksym {

// Finds symbols of a compact map by name without decoding all of them: a
// sorted list of hashes, 16 bytes per symbol. Made once from the map; does not
// refer to it afterwards, except that Find wants the same one.
class KernelNameIndex {
 public:
  explicit KernelNameIndex(const KernelSymbolMap& map);

  // As KernelSymbolMap::FindByName. O(log symbols), and one lookup for each
  // symbol whose name has the same hash.
  std::vector<Address> Find(const KernelSymbolMap& map,
                            std::string_view name) const;
  size_t memory_bytes() const { return items_.size() * sizeof(Item); }

 private:
  struct Item {
    uint64_t hash;
    uint64_t address;
    friend auto operator<=>(const Item&, const Item&) = default;
  };

  std::vector<Item> items_;
};

}  // namespace ksym
