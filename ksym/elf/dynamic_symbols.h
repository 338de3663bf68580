// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ksym/base/address.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace ksym {

// What a dynamic symbol says of a function or of data.
struct DynamicSymbol {
  ElfAddress address;
  uint64_t size = 0;
};

// Finds dynamic symbols of a 64-bit file by their GNU hash table: a few reads
// for each. Borrows the file and the image.
class DynamicSymbols {
 public:
  // Nothing: the file has none.
  static std::optional<DynamicSymbols> Open(const ByteSource& source,
                                            const ElfImage& image);
  // Nothing: the file does not define it.
  std::optional<DynamicSymbol> Find(std::string_view name) const;

 private:
  DynamicSymbols(const ByteSource& source, const ElfSection& hash,
                 const ElfSection& symbols, const ElfSection& names)
      : source_(&source), hash_(&hash), symbols_(&symbols), names_(&names) {}

  bool Read(const ElfSection& section, uint64_t offset,
            std::span<std::byte> out) const;
  uint32_t Word(uint64_t offset) const;
  uint64_t Long(uint64_t offset) const;
  std::optional<DynamicSymbol> Get(uint64_t number,
                                   std::string_view name) const;

  const ByteSource* source_;
  const ElfSection* hash_;
  const ElfSection* symbols_;
  const ElfSection* names_;
  uint32_t buckets_ = 0;
  uint32_t first_symbol_ = 0;
  uint32_t bloom_words_ = 0;
  uint32_t bloom_shift_ = 0;
};

// Fills `out` with what the file has for that address; false where it has not
// as much.
bool ReadInitialBytes(const ByteSource& source, const ElfImage& image,
                      ElfAddress address, std::span<std::byte> out);

}  // namespace ksym
