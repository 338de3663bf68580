// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ksym/base/heap_bytes.h"
#include "ksym/kernel/module_extents.h"
#include "ksym/kernel/token_interner.h"

namespace ksym {

// A symbol while a map is being built.
struct MapRecord {
  enum Flag : uint32_t {
    kPrefixed = 1,  // has a padding symbol of the same name, type and module
    kPadding = 2,   // is one: the tokens are the name without `__pfx_`
    kTextEnd = 4,   // `_etext` or `_einittext`
    kGap = 8,       // no symbol: nothing lives from here on
    kDead = 16,     // merged into another record
    kAllFlags = 31,
  };

  static constexpr uint32_t kMaxModules = uint32_t{1} << 19;
  static uint32_t Kind(uint32_t module, char type) {
    return module << 8 | static_cast<uint8_t>(type);
  }

  uint64_t address = 0;
  uint32_t first_token = 0;  // up to the one with kLastToken
  uint32_t packed = 0;       // kind << 5 | flags

  uint32_t kind() const { return packed >> 5; }
  uint32_t module() const { return packed >> 13; }
  char type() const { return static_cast<char>(kind() & 0xff); }
  bool Has(uint32_t flags) const { return (packed & flags) != 0; }
  void Set(Flag flag) { packed |= flag; }
  void Clear(uint32_t flags) { packed &= ~flags; }
};
static_assert(sizeof(MapRecord) == 16);

// All symbols of a map being built, and the steps from the order of the input
// to the order of the map.
struct MapRecords {
  TokenInterner interner;
  std::vector<uint32_t> tokens;
  std::vector<MapRecord> records;
  // Memory that served and can serve again: it costs no page faults.
  HeapBytes spare;
  std::vector<std::string> modules;
  ModuleExtents extents;
  // Whether a module's areas are in several places; set by InsertGaps().
  bool modules_are_scattered = false;
  // Bytes from a padding symbol to its function; 0: no pair has been seen.
  uint32_t prefix_distance = 0;
  uint32_t max_name_bytes = 0;

  // Does all of the below, in this order. No name can be added after it.
  void Arrange();

 private:
  void SortByAddress();
  // Merges padding records with their functions.
  void PairPadding();
  // Sorts records of one address by the alias rule.
  void SortAliases();
  // Splits pairs again whose padding answers for another symbol's bytes too.
  void SplitUnsafePairs();
  // Ends sections and modules with gap records.
  void InsertGaps();

  std::string NameOf(const MapRecord& record) const;
  bool SameName(const MapRecord& a, const MapRecord& b) const;
  size_t GroupEnd(size_t begin) const;
  void SortGroup(size_t begin, size_t end);
  bool PairIsSafe(size_t begin, size_t end) const;
  bool EndsText(size_t begin, size_t end) const;
  // Tells `extents` which pages of modules have data.
  void FindModuleData();
  // Where the memory ends that the record is in, if it is its module's last one
  // there: at least its page.
  uint64_t AreaEnd(const MapRecord& record) const;
  // Whether modules have memory beside what `extents` tells.
  bool AreModulesScattered() const;
  uint64_t BoundOf(size_t last, size_t next) const;
  // The symbol is alone at its address, and lives until the next one starts.
  bool IsAmidImage(size_t i) const;
};

}  // namespace ksym
