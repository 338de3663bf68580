// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/file.h"
#include "ksym/base/result.h"
#include "ksym/kernel/kallsyms_blob.h"
#include "ksym/kernel/kallsyms_reader.h"
#include "ksym/kernel/kernel_symbol.h"
#include "ksym/kernel/kernel_symbol_map.h"

namespace ksym {

// What is told from outside about a file of kernel symbols.
struct KernelSymbolOptions {
  // The bounds of the kernel's text, for a blob, which does not say them.
  // Without them its own `_stext` (or `_text`, or first symbol) and `_etext`
  // (or the end of the last symbol's page) are taken.
  std::optional<Address> stext = {};
  std::optional<Address> etext = {};
  // What reads a listing from the open file, which outlives it; absent: read(2)
  // as the lines are needed. A program may read ahead in a thread, as the
  // kernel takes longer to write its listing than the lines to parse.
  std::function<std::unique_ptr<ByteStream>(int fd)> make_stream = {};
};

// The kernel's symbols from whatever form they came in. Owns its bytes or
// their mapping. Move-only; thread-safe for readers with a SymbolNameBuffer
// each.
class KernelSymbolSource {
 public:
  using Visitor = std::function<bool(const KernelSymbol&)>;

  explicit KernelSymbolSource(KernelSymbolMap map) : table_(std::move(map)) {}

  // Bytes that bytes() gave: a compact map or a blob, told apart by content.
  // kCorrupt or kUnsupported for others.
  static Result<KernelSymbolSource> FromBytes(
      std::vector<std::byte> bytes, const KernelSymbolOptions& options = {});

  // As KernelSymbolMap has them. A blob knows no modules, and no symbols
  // outside of the kernel's text.
  std::optional<KernelSymbol> Find(Address address, SymbolNameBuffer& buffer,
                                   SymbolQuery query = {}) const;
  std::vector<Address> FindByName(std::string_view name) const;
  void ForEach(SymbolNameBuffer& buffer, const Visitor& visit) const;
  size_t symbol_count() const;
  std::span<const std::byte> bytes() const;

  // Null when it is the other one.
  const KernelSymbolMap* map() const {
    return std::get_if<KernelSymbolMap>(&table_);
  }
  const KallsymsBlob* blob() const {
    const auto* table = std::get_if<BlobTable>(&table_);
    return table == nullptr ? nullptr : &table->blob;
  }

 private:
  struct BlobTable {
    BlobTable(std::vector<std::byte> bytes, const KallsymsBlob& view)
        : storage(std::move(bytes)), blob(view) {}
    BlobTable(BlobTable&&) noexcept = default;
    BlobTable& operator=(BlobTable&&) noexcept = default;

    std::vector<std::byte> storage;  // which the view looks into
    KallsymsBlob blob;
  };

  explicit KernelSymbolSource(BlobTable table) : table_(std::move(table)) {}

  std::variant<KernelSymbolMap, BlobTable> table_;
};

// The running kernel's own listing.
inline constexpr std::string_view kRunningKernelSymbols = "/proc/kallsyms";

// Reads a listing (/proc/kallsyms, System.map, nm), a compact map or a blob,
// told apart by content, from a file or a pipe. Errors name the path. What a
// listing contained goes to `report` unless it is null. With
// kRunningKernelSymbols, /proc/modules is read as well, so that a module's last
// symbol ends with its module.
Result<KernelSymbolSource> OpenKernelSymbols(
    const std::string& path, const KernelSymbolOptions& options = {},
    KallsymsReport* report = nullptr);

}  // namespace ksym
