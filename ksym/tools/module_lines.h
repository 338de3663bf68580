// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/elf/elf_image.h"
#include "ksym/gsym/gsym_image.h"
#include "ksym/gsym/gsym_lookup.h"
#include "ksym/symbolizer.h"

namespace ksym {

// Functions, lines and inlined calls of the files that a Symbolizer has loaded,
// which it borrows. A file's debug data, or its debug file's, are converted to
// GSYM in memory when it is first asked for, and kept: some 10 ms per MB of
// DWARF. Not thread-safe.
class ModuleLines {
 public:
  explicit ModuleLines(const Symbolizer& symbolizer)
      : symbolizer_(symbolizer) {}

  // What is known of a byte of a file; null: nothing. Valid until the next
  // call.
  const GsymAnswer* Find(std::string_view build_id, FileOffset offset);

 private:
  struct Module {
    GsymImage image;
    std::vector<ElfSegment> segments;
  };
  std::optional<Module> Make(std::string_view build_id) const;

  const Symbolizer& symbolizer_;
  std::map<std::string, std::optional<Module>, std::less<>> modules_;
  GsymAnswer answer_;
};

}  // namespace ksym
