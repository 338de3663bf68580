// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/kernel/kernel_symbol.h"

namespace ksym {

// The interchange format's constants; docs/kallsyms.md describes it.
inline constexpr size_t kBlobMaxTokens = 512;
inline constexpr uint8_t kBlobTokenMarker = 0xff;
inline constexpr size_t kBlobRecordHead = 3;  // type, payload length
inline constexpr size_t kBlobMaxPayload = 65535;

// Zero-copy view of a kallsyms blob: addresses and compressed names, sorted by
// address, with a second order by name. The format has no magic, no version
// and no checksum, so every section, offset, token and length is checked once
// by FromBlob. Offsets count from the blob's first byte, and the bytes may lie
// at any address in memory: nothing is ever copied. Borrows the bytes.
// Thread-safe for readers.
class KallsymsBlob {
 public:
  // [stext, etext) is the kernel's text: no other address has a name. kCorrupt
  // for bytes that are not a blob. O(symbols).
  static Result<KallsymsBlob> FromBlob(std::span<const std::byte> blob,
                                       Address stext, Address etext);

  size_t symbol_count() const { return symbol_count_; }
  std::span<const std::byte> bytes() const { return blob_; }
  Address stext() const { return stext_; }
  Address etext() const { return etext_; }

  // The last symbol at or before the address; of several at one address the
  // first one, for every byte. Its end is the next other address, or etext.
  // The module is always empty and `__pfx_` names are as they are.
  std::optional<KernelSymbol> LookupAddress(Address address,
                                            SymbolNameBuffer& buffer) const;
  // The address of the first symbol, in address order, with exactly this
  // name. O(log symbols) names decoded.
  std::optional<Address> LookupName(std::string_view name) const;
  // The addresses of all of them, ascending.
  std::vector<Address> LookupNames(std::string_view name) const;

  // All symbols in address order; text bounds do not matter. The visitor
  // returns false to stop.
  using Visitor = std::function<bool(const KernelSymbol&)>;
  void ForEach(SymbolNameBuffer& buffer, const Visitor& visit) const;
  // Lines of "<16 hex digits> <type> <name>\n", one per call.
  void DumpAllSymbols(const std::function<void(std::string_view)>& line) const;

  // The symbols that share the answer's address, first to last.
  void FindAliases(Address address, SymbolNameBuffer& buffer,
                   const Visitor& visit) const;

  // Where the parts lie, for statistics.
  struct Sections {
    size_t addresses = 0;
    size_t offsets = 0;
    size_t name_order = 0;
    size_t names = 0;
    size_t tokens = 0;
    size_t token_index = 0;
  };
  Sections SectionBytes() const;
  size_t token_count() const { return token_count_; }

 private:
  struct Record {
    char type;
    std::string_view token;
    std::string_view rest;

    size_t size() const { return token.size() + rest.size(); }
  };

  KallsymsBlob() = default;

  Status ParseSections();
  Status CheckRecords() const;
  std::optional<Record> ReadRecord(uint64_t offset) const;
  std::optional<uint32_t> TokenId(std::string_view& payload) const;
  std::string_view Token(uint32_t id) const;

  template <typename T>
  T Load(uint64_t section, size_t index) const {
    T value;
    std::memcpy(&value, blob_.data() + section + index * sizeof(T), sizeof(T));
    return value;
  }
  uint64_t AddressAt(size_t i) const { return Load<uint64_t>(addresses_, i); }
  // A record that CheckRecords has accepted.
  Record RecordAt(size_t i) const;
  // <0, 0, >0 as the record's name sorts before, equals, or after `name`.
  static int Compare(const Record& record, std::string_view name);
  // [first, last) in name order.
  std::pair<size_t, size_t> NameRange(std::string_view name) const;
  // [first, last) of the symbols that share the answer's address.
  std::pair<size_t, size_t> AddressRange(uint64_t address) const;
  KernelSymbol SymbolAt(size_t i, uint64_t end, SymbolNameBuffer& buffer) const;

  std::span<const std::byte> blob_;
  Address stext_;
  Address etext_;
  size_t symbol_count_ = 0;
  size_t token_count_ = 0;
  // Offsets in the blob.
  uint64_t addresses_ = 0;
  uint64_t offsets_ = 0;
  uint64_t name_order_ = 0;
  uint64_t names_ = 0;
  uint64_t names_size_ = 0;
  uint64_t tokens_ = 0;
  uint64_t tokens_size_ = 0;
  uint64_t token_index_ = 0;
};

}  // namespace ksym
