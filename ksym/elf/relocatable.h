// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace ksym {

// Relocatable files (ET_REL) are object files and kernel modules. Their
// sections have no addresses yet, so ElfImage gives them some: those with code
// from 0 on, in the order of their headers and as they are aligned, then what
// else takes memory. A file and its debug file get the same. The symbols of
// such a file count from their section's address.

// Whether it is one; false for what is no ELF file.
bool IsRelocatable(const ByteSource& source);

// What a linker would still write into the sections of a relocatable file,
// with the addresses that ElfImage gives them: for debug data, which refer to
// code and to each other by absolute numbers. x86 and Arm, of 32 and 64 bits.
// Borrows its arguments; holds 8 bytes per symbol. Immutable.
class Relocations {
 public:
  // Reads the symbols' addresses; a file without symbols has none. kCorrupt,
  // kLimit; kUnsupported: a symbol is in a section beyond the 65,279th.
  static Result<Relocations> Load(const ByteSource& source,
                                  const ElfImage& image);

  // Applies those of `section`, a reference to one of the image's, to its
  // bytes. A reference to another file becomes the highest address.
  // kUnsupported: of another machine or kind; kCorrupt: outside of the bytes.
  // Then some may have been applied.
  Status Apply(const ElfSection& section, std::span<std::byte> bytes) const;

 private:
  struct Entry;

  Relocations(const ByteSource& source, const ElfImage& image)
      : source_(&source), image_(&image) {}
  Status ReadSymbols(const ElfSection& table);
  Status ApplyTable(const ElfSection& table, std::span<std::byte> bytes) const;
  Status ApplyOne(const Entry& entry, std::span<std::byte> bytes) const;

  const ByteSource* source_;
  const ElfImage* image_;
  std::vector<uint64_t> addresses_;  // by symbol
};

}  // namespace ksym
