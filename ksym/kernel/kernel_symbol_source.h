#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/kernel/kernel_symbol.h"
#include "ksym/kernel/kernel_symbol_map.h"

namespace ksym {

// The kernel's symbols from whatever form they came in. Move-only; thread-safe
// for readers with a SymbolNameBuffer each.
class KernelSymbolSource {
 public:
  explicit KernelSymbolSource(KernelSymbolMap map) : map_(std::move(map)) {}

  // Bytes that bytes() gave; kCorrupt or kUnsupported for others.
  static Result<KernelSymbolSource> FromBytes(std::vector<std::byte> bytes);

  // As KernelSymbolMap::Find.
  std::optional<KernelSymbol> Find(Address address,
                                   SymbolNameBuffer& buffer) const {
    return map_.Find(address, buffer);
  }
  size_t symbol_count() const { return map_.symbol_count(); }
  std::span<const std::byte> bytes() const { return map_.bytes(); }

 private:
  KernelSymbolMap map_;
};

// Reads a listing (/proc/kallsyms, System.map, nm) or a compact map, told
// apart by content. Errors name the path.
Result<KernelSymbolSource> OpenKernelSymbols(const std::string& path);

}  // namespace ksym
