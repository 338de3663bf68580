// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/keyed_hash.h"
#include "ksym/base/result.h"
#include "ksym/kernel/kernel_symbol_map.h"
#include "ksym/kernel/map_records.h"
#include "ksym/kernel/token_interner.h"

namespace ksym {

// Collects symbols, in any order, and makes the compact map of them. The same
// lines in the same order give the same bytes. Memory: 16 bytes and 4 per
// token of the name for each symbol, and a quarter of it in reserve.
class KernelSymbolMapBuilder {
 public:
  KernelSymbolMapBuilder();

  struct Symbol {
    Address address;
    char type = 0;            // printable ASCII
    std::string_view name;    // not empty; any bytes
    std::string_view module;  // without brackets
  };
  // kInvalid for what a symbol cannot be, kLimit beyond 2^31 bytes of names.
  // `.cfi` and `.cfi_jt` are cut off the name.
  Status Add(const Symbol& symbol);

  // Where a module's text begins, and behind it as many bytes as the module has
  // in all, as /proc/modules says: [start, end). Without it a module ends with
  // the page in which its last symbol starts.
  void AddModuleExtent(Address start, Address end);

  size_t symbol_count() const { return symbol_count_; }

  // The builder is used up.
  Result<KernelSymbolMap> Build() &&;

 private:
  uint32_t ModuleId(std::string_view module);
  void AddRecord(uint64_t address, uint32_t kind, uint32_t flags,
                 std::string_view name);
  bool JoinPadding(uint64_t address, uint32_t kind, std::string_view name);

  MapRecords records_;
  // The last record is a padding symbol whose function may come next.
  bool after_padding_ = false;
  std::unordered_map<std::string, uint32_t, TextHash> module_ids_;
  uint32_t last_module_ = 0;
  size_t symbol_count_ = 0;
  size_t name_bytes_ = 0;
};

}  // namespace ksym
