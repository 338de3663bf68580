// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace ksym {

// A symbol of code or data, with views of the table that it came from.
struct LinkerSymbol {
  std::string_view name;
  // The source file that the compiler gave, without directories; only local
  // symbols have one.
  std::string_view source_file;
  ElfAddress start;
};

// The linker's symbols of one ELF file, functions and variables, found by the
// rules of LLVM's symbolizer, so that both give one answer:
// - .symtab, or .dynsym in a file without it;
// - the symbol that starts last at or before the address, if it reaches that
//   far; of several that start there the largest, of those the last one;
// - but one without a size reaches up to the next and never out of its
//   section, where LLVM's has no end.
// ElfSymbols is what names code in a profile: it knows linkage stubs, nested
// symbols and debug files. Holds the names: as much memory as the file's
// string table and 32 bytes per symbol. Immutable.
class LinkerSymbols {
 public:
  // Longer names are cut.
  static constexpr size_t kMaxNameBytes = size_t{64} << 10;

  // `source` is read and not kept. A file without symbols is no error.
  // kUnsupported: not ELF; kCorrupt; kLimit: too many symbols or names.
  static Result<LinkerSymbols> Load(const ByteSource& source);

  // O(log n).
  std::optional<LinkerSymbol> Find(ElfAddress address) const;

  // Whether the file says where it is loaded; one that is not linked yet, such
  // as a kernel module, counts the addresses of each section from 0.
  bool is_linked() const { return is_linked_; }
  // Where an image of the Linux kernel has `_stext`; of other files nothing.
  std::optional<ElfAddress> kernel_text() const { return kernel_text_; }

  size_t symbol_count() const { return entries_.size(); }
  size_t memory_bytes() const {
    return names_.capacity() + entries_.capacity() * sizeof(Entry);
  }
  // Lower-case hex; empty when the file has none.
  const std::string& build_id() const { return build_id_; }

 private:
  struct Entry {
    uint64_t start = 0;
    uint64_t size = 0;  // 0: unsized, until Finish()
    uint64_t section_end = 0;
    uint32_t name = 0;  // offset in names_
    uint32_t file = 0;
  };
  struct RawSymbol;

  LinkerSymbols() = default;
  Status ReadTable(const ByteSource& source, const ElfImage& image,
                   const ElfSection& section);
  Status ReadNames(const ByteSource& source, const ElfImage& image,
                   const ElfSection& section);
  void Add(const RawSymbol& symbol, const ElfImage& image, uint32_t file);
  void Finish();
  std::string_view NameAt(uint32_t offset) const;

  std::string names_;
  std::vector<Entry> entries_;  // by start, one each once finished
  std::string build_id_;
  bool is_linked_ = false;
  std::optional<ElfAddress> kernel_text_;
};

}  // namespace ksym
