// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ksym/dwarf/dwarf_unit.h"

namespace ksym {

// The entries of one unit that give a scope to the names in them: namespaces,
// classes, and functions that have classes. 12 bytes each. Immutable.
class EntryScopes {
 public:
  // What a scope may be of.
  enum class Of : uint8_t { kFunction, kType };

  EntryScopes() = default;
  // One pass over the unit's entries, of which no value is read. What is behind
  // a malformed entry is not known.
  EntryScopes(std::span<const std::byte> info, const DwarfUnit& unit);

  // The innermost scope that the entry at `offset` is in, by its own offset;
  // nothing if there is none. A function within a function is in no scope of
  // its own, as C has such; a class within one is. O(log scopes).
  std::optional<uint64_t> Find(uint64_t offset, Of of) const;

 private:
  class Reader;
  // Offsets are from the unit's.
  struct Scope {
    uint32_t entry = 0;
    uint32_t end = 0;              // of what is in it
    uint32_t parent : 31 = 0;      // index + 1; 0: none
    uint32_t is_function : 1 = 0;  // 0: a namespace or class
  };

  uint64_t unit_offset_ = 0;
  std::vector<Scope> scopes_;  // in the order of their entries
};

}  // namespace ksym
