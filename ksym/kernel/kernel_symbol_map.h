// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/file.h"
#include "ksym/base/heap_bytes.h"
#include "ksym/base/result.h"
#include "ksym/kernel/kernel_symbol.h"
#include "ksym/kernel/map_tables.h"

namespace ksym {

// Every symbol of a kernel in one contiguous, position-independent, immutable
// buffer: about 4.7 bytes per symbol of a kernel whose functions have padding
// symbols, 8.5 of one with modules and data symbols (docs/kallsyms.md gives
// the format, tests/bench the figures). Made by KernelSymbolMapBuilder, or
// mapped from a file that holds bytes().
//
// Thread-safe for any number of readers, each with its own SymbolNameBuffer.
class KernelSymbolMap {
 public:
  // Copies the bytes and owns them. All of these check everything (kCorrupt,
  // kUnsupported); cost: one decoding of all symbols, some milliseconds.
  static Result<KernelSymbolMap> FromBytes(std::span<const std::byte> bytes);
  // `bytes` must outlive the map; any alignment.
  static Result<KernelSymbolMap> Borrow(std::span<const std::byte> bytes);
  // Maps a file that was written by rename (see MappedFile).
  static Result<KernelSymbolMap> MapFile(const std::string& path);

  KernelSymbolMap(KernelSymbolMap&&) noexcept = default;
  KernelSymbolMap& operator=(KernelSymbolMap&&) noexcept = default;

  // The symbol whose bytes contain the address. Past a symbol's end - the next
  // symbol, `_etext`, `_einittext`, the end of its module - there is none.
  // Where several symbols have one address the first by AliasBefore (see
  // symbol_order.h) answers. O(log symbols) + one block decoded; no
  // allocation after the buffer's first use.
  std::optional<KernelSymbol> Find(Address address, SymbolNameBuffer& buffer,
                                   SymbolQuery query = {}) const;

  using Visitor = std::function<bool(const KernelSymbol&)>;
  // All symbols at the address that Find answers for, of the kinds asked for,
  // best name first. A visitor returns false to stop.
  void FindAliases(Address address, SymbolNameBuffer& buffer,
                   const Visitor& visit, SymbolQuery query = {}) const;

  // All symbols that start at exactly this address, of any kind, with their
  // whole names.
  void VisitAt(Address address, SymbolNameBuffer& buffer,
               const Visitor& visit) const;

  // The addresses of all symbols with exactly this name, ascending; `__pfx_X`
  // is a name like any other. Decodes the whole map: milliseconds. For many
  // names, KernelNameIndex.
  std::vector<Address> FindByName(std::string_view name) const;

  // All symbols by address, then AliasBefore, then module; `__pfx_` symbols
  // among them. `offset` is 0.
  void ForEach(SymbolNameBuffer& buffer, const Visitor& visit) const;

  std::span<const std::byte> bytes() const { return bytes_; }
  size_t symbol_count() const { return tables_.header().symbol_count; }
  // bytes() and what was allocated beside them to decode them.
  size_t memory_bytes() const {
    return bytes_.size() + sizeof(*this) + tables_.memory_bytes();
  }
  const MapTables& tables() const { return tables_; }

 private:
  friend class KernelSymbolMapBuilder;

  // Symbols that share an address, with the addresses they answer for.
  struct Group {
    MapEntry first;
    uint64_t start = 0;  // of the padding, if the first entry has any
    uint64_t end = 0;
  };

  KernelSymbolMap(MapTables tables, std::span<const std::byte> bytes)
      : tables_(std::move(tables)), bytes_(bytes) {}

  static Result<KernelSymbolMap> Parse(std::span<const std::byte> bytes);
  // For bytes the builder has just made.
  static Result<KernelSymbolMap> Adopt(HeapBytes bytes);
  Status CheckEntries() const;
  // Whether the entry may follow one at address `previous`; group_start: where
  // its group's addresses start, of the entries before and then of this one.
  Status CheckOrder(const MapEntry& entry, uint64_t previous,
                    uint64_t& group_start) const;

  // False when no symbol and no gap answers.
  bool FindGroup(uint64_t address, Group& group) const;
  bool RewindGroup(uint32_t block, Group& group) const;
  // What is wanted of a group: its symbols, or the padding before them.
  enum class Part : uint8_t { kBody, kPadding };
  struct Wanted {
    Part part;
    SymbolQuery query;
  };
  static Part PartAt(const Group& group, Address address) {
    return address.value < group.first.address ? Part::kPadding : Part::kBody;
  }
  // One symbol of the group; an empty name if it is damaged.
  KernelSymbol MakeSymbol(const Group& group, const MapEntry& entry,
                          Wanted wanted, SymbolNameBuffer& buffer) const;
  // Calls the visitor for the group's symbols; false to stop.
  bool VisitGroup(const Group& group, Wanted wanted, SymbolNameBuffer& buffer,
                  const Visitor& visit) const;

  MapTables tables_;
  std::span<const std::byte> bytes_;
  HeapBytes owned_;
  std::optional<MappedFile> mapped_;
};

}  // namespace ksym
