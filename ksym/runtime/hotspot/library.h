// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ksym/base/address.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace ksym {

// An ELF file that holds a HotSpot JVM: libjvm.so, whatever its name. It says
// itself how its data lie, in tables that debuggers read (vmStructs.hpp of
// OpenJDK); these are the addresses of the variables that lead to the tables.
struct HotspotLibrary {
  ElfAddress structs;        // gHotSpotVMStructs: VMStructEntry*
  ElfAddress types;          // gHotSpotVMTypes: VMTypeEntry*
  ElfAddress struct_stride;  // of entries, in bytes, and where in them is what
  ElfAddress struct_type_name;
  ElfAddress struct_field_name;
  ElfAddress struct_offset;
  ElfAddress struct_address;
  ElfAddress type_stride;
  ElfAddress type_name;
  ElfAddress type_size;
};

// Looks for these among the file's dynamic symbols. Nothing if it lacks one,
// which takes two reads of a few bytes for most files.
std::optional<HotspotLibrary> FindHotspot(const ByteSource& source,
                                          const ElfImage& image);

}  // namespace ksym
