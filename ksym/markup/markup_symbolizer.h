// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/markup/markup_context.h"

namespace ksym {

// A function at an address, or code that was inlined into one.
struct MarkupFrame {
  std::string_view function;  // demangled if wanted; empty: not known
  // Whether the linker's symbol table has that name, and not only debug data,
  // and the source file that it says, without directories, of a local symbol.
  bool has_symbol = false;
  std::string_view symbol_file = {};
  uint64_t offset = 0;    // of the address from the function's start
  std::string_view file;  // empty: not known
  uint32_t line = 0;
  uint32_t column = 0;
};

// A variable at an address, or whatever else has a name there.
struct MarkupDatum {
  std::string_view name;  // empty: not known
  uint64_t offset = 0;
};

// Knows the modules of a log. What it returns lives until its next call.
class MarkupSymbolizer {
 public:
  MarkupSymbolizer() = default;
  MarkupSymbolizer(const MarkupSymbolizer&) = delete;
  MarkupSymbolizer& operator=(const MarkupSymbolizer&) = delete;
  virtual ~MarkupSymbolizer() = default;

  // The frames at an address in `mmap`, innermost first; none: nothing is
  // known. Fails when there is nothing to look into, such as a module whose
  // file is not found; the filter says so once per module.
  virtual Result<std::span<const MarkupFrame>> ResolveCode(
      const MarkupMmap& mmap, Address address) = 0;
  virtual Result<MarkupDatum> ResolveData(const MarkupMmap& mmap,
                                          Address address) = 0;
  // The source-level name of a linkage name of the log.
  virtual std::string Demangle(std::string_view linkage_name) = 0;
  // All modules are gone; their places may be those of others from now on.
  virtual void Reset() = 0;
};

}  // namespace ksym
