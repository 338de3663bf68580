// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bpf/unwind_abi.h"
#include "daemon/unwind/unwind_maps.h"
#include "daemon/unwind/unwind_pieces.h"
#include "ksym/elf/elf_image.h"
#include "ksym/process/process_image.h"

namespace profd {

// A file's table as it lies in the sampler's maps.
struct UnwindFile {
  struct Piece {
    uint64_t begin = 0;  // of the code, from the table's base
    uint64_t end = 0;
    uint32_t rows_at = 0;
    UnwindMaps::Place place;
  };
  ksym::ElfAddress base;
  std::vector<ksym::ElfSegment> code;  // the executable segments
  std::vector<Piece> pieces;           // ascending

  // Run-time address less ElfAddress; nothing if the mapping shows no code.
  std::optional<uint64_t> LoadBias(const ksym::Mapping& mapping) const;
};

// Puts the entries of one mapping of the file behind the others: one per piece
// that it shows, and one without a table for each gap. Mappings that are not
// user memory ([vsyscall]) are left out.
void AppendUnwindMappings(const ksym::Mapping& mapping, const UnwindFile& file,
                          std::vector<unwind_mapping>& mappings);
// The same of a mapping that has no table, or none yet; nothing for one that
// stands for others (ksym::kTooLargePath).
enum class NoTable : uint8_t { kEver, kYet };
void AppendUnwindMappings(const ksym::Mapping& mapping, NoTable why,
                          std::vector<unwind_mapping>& mappings);

}  // namespace profd
