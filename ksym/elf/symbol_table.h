// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ksym/base/address.h"

namespace ksym {

// How widely a symbol is visible; the order is that of preference.
enum class SymbolBinding : uint8_t { kLocal, kWeak, kGlobal };

// Which string table a symbol's name is in.
enum class NameTable : uint8_t {
  kSymtab,   // .strtab of the file itself; without .symtab, .gopclntab
  kDynamic,  // .dynstr
  kPlt,      // .dynstr, and the symbol is the procedure's linkage table stub
  kDebug,    // .strtab of the file's debug data
};

// A function symbol as a reader of one of the tables found it.
struct SymbolCandidate {
  ElfAddress start;
  // One past its last byte. For an unsized symbol the end of its section;
  // Build() moves it back to the next symbol.
  ElfAddress end;
  uint32_t name = 0;  // offset in its string table
  NameTable table = NameTable::kSymtab;
  SymbolBinding binding = SymbolBinding::kLocal;
  bool sized = true;
  // An assembler's label: unsized, and nothing says that it begins a function.
  bool label = false;
};

// One name of several that a place can be called by.
struct SymbolAlias {
  std::string_view name;
  SymbolBinding binding = SymbolBinding::kLocal;
};

// The tie rule: whether `a` is shown rather than `b` when both symbols cover
// exactly the same bytes. In this order: one that is not local, because local
// symbols are missing where a file is stripped; fewer leading underscores
// ("write" rather than "__write"); the stronger binding; the shorter name and
// the lexicographically smaller one, both without their versions; the default
// version. A strict weak order.
bool IsPreferredAlias(const SymbolAlias& a, const SymbolAlias& b);

// "memcpy" for "memcpy@GLIBC_2.14" and "memcpy@@GLIBC_2.14". A linker writes
// the version to .symtab, while .dynsym keeps versions apart. "f@plt" has none.
std::string_view WithoutVersion(std::string_view name);

// Maps the addresses of one ELF file to symbols. Names stay in the file: an
// entry is 12 bytes, so a table of 100,000 symbols is 1.2 MB and is built
// without reading a string table.
//
// The address space is cut into disjoint pieces when the table is built, each
// owned by the innermost symbol that covers it, so a lookup is one binary
// search whatever the nesting. The rules:
// - A symbol with a size covers [start, start + size), cut at the end of its
//   section. One without covers everything up to the next symbol's start or
//   the section's end. A label is such a one, but only where no other symbol
//   starts or covers its place: most are jump targets within a function.
// - Where several cover an address, the one that starts last wins; of those
//   with one start a sized one wins, then the smaller.
// - Of those with the same bytes IsPreferredAlias decides, when the name is
//   read; they are the aliases of a match.
// Immutable after Build.
class SymbolTable {
 public:
  // No wider table can be named: entries hold 32-bit distances.
  static constexpr uint64_t kMaxSpan = uint64_t{1} << 32;
  // A longer symbol is cut: sizes share a word with the binding.
  static constexpr uint64_t kMaxSymbolSize = uint64_t{1} << 30;
  // Names further back in a string table are not reachable.
  static constexpr uint32_t kMaxNameOffset = (uint32_t{1} << 30) - 1;
  // More names of one place are not compared: hostile files only.
  static constexpr size_t kMaxAliases = 32;

  struct Match {
    uint32_t index = 0;  // for alias() and alias_count(); unique per piece
    ElfAddress start;    // of the symbol, not of the piece
    ElfAddress address;  // that was looked up
  };
  struct Name {
    uint32_t offset = 0;
    NameTable table = NameTable::kSymtab;
    SymbolBinding binding = SymbolBinding::kLocal;
  };

  SymbolTable() = default;
  // Sorts and cuts; O(n log n). Transiently needs the candidates' memory and
  // the table's. Candidates outside [lowest start, + kMaxSpan) are left out.
  static SymbolTable Build(std::vector<SymbolCandidate> candidates);

  // O(log n).
  std::optional<Match> Find(ElfAddress address) const;
  // The names of a match, at most kMaxAliases.
  size_t AliasCount(const Match& match) const;
  Name alias(const Match& match, size_t i) const;

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  size_t memory_bytes() const;

 private:
  // A piece of the address space and one name of its owner; the pieces are
  // disjoint and sorted, but for aliases, which repeat start and size.
  struct Entry {
    uint32_t start = 0;  // from base_
    uint32_t size : 30 = 0;
    uint32_t binding : 2 = 0;
    uint32_t name : 30 = 0;
    uint32_t table : 2 = 0;
  };
  static_assert(sizeof(Entry) == 12);

  // A piece that does not begin where its symbol does, because another symbol
  // lies within.
  struct Continuation {
    uint32_t piece_start = 0;
    uint32_t symbol_start = 0;
  };

  class Cutter;

  ElfAddress base_;
  std::vector<Entry> entries_;
  std::vector<Continuation> continuations_;  // sorted by piece_start
};

}  // namespace ksym
