// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
#include "ksym/runtime/cpython/interpreter.h"
#include "ksym/runtime/hotspot/library.h"
#include "ksym/runtime/v8/layout.h"

namespace ksym {

// The language runtimes that an ELF file holds, each by what the file exports
// and whatever its name is.
struct FileRuntimes {
  std::optional<CpythonInterpreter> cpython;
  const V8Layout* v8 = nullptr;  // null: it holds no V8
  std::optional<HotspotLibrary> hotspot;
  // Runtimes that it holds, and why their frames are not known.
  struct Refusal {
    std::string_view language;  // for people
    std::string why;
  };
  std::vector<Refusal> refusals;

  bool has_any() const {
    return cpython.has_value() || v8 != nullptr || hotspot.has_value();
  }
};

// For most files this takes two reads of a few bytes for each runtime.
FileRuntimes FindRuntimes(const ByteSource& source, const ElfImage& image);

}  // namespace ksym
