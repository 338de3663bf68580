// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/dwarf/dwarf_places.h"
#include "ksym/elf/linker_symbols.h"
#include "ksym/fetch/debuginfod_client.h"
#include "ksym/gsym/gsym_image.h"

namespace ksym {

// Identifies one binary; at least one of the three is known.
struct ModuleFile {
  std::optional<LinkerSymbols> symbols;
  std::optional<GsymImage> gsym;     // lines and inlined calls, or
  std::optional<DwarfPlaces> dwarf;  // the same with columns
  std::string path;                  // of the ELF file
  std::string no_dwarf;              // why it cannot be used; empty: it can
  // Why some or all debug data are not used; empty: they are.
  std::string Problem() const;
  size_t memory_bytes() const;
};

// Finds binaries by their build-ids. Not thread-safe.
class ModuleFinder {
 public:
  struct Places {
    // Directories with .build-id/ab/cdef.debug below them, in the order in
    // which they are looked at; none: /usr/lib/debug.
    std::vector<std::string> debug_directories;
    // Directories with .build-id/ab/cdef.gsym below them, or with abcdef.gsym.
    std::vector<std::string> gsym_directories;
    DebuginfodClient* debuginfod = nullptr;  // borrowed; null: not asked
  };

  explicit ModuleFinder(Places places) : places_(std::move(places)) {}

  // Where there is a GSYM file the DWARF is not read. kNotFound: nothing is
  // there; kInvalid: a file has another build-id than it lies under. `build_id`
  // is lower-case hex.
  Result<ModuleFile> Load(const std::string& build_id) const;
  // The GSYM file alone. kNotFound: there is none.
  Result<GsymImage> OpenGsym(const std::string& build_id) const;

 private:
  struct OpenedElf {
    ByteSource source;
    std::string path;
  };
  Result<OpenedElf> OpenElf(const std::string& build_id) const;

  Places places_;
};

}  // namespace ksym
