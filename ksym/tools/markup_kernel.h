// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/kernel/kernel_symbol_source.h"
#include "ksym/markup/markup_context.h"

namespace ksym {

// Where the running kernel says what it is.
struct RunningKernelPaths {
  std::string symbols = std::string(kRunningKernelSymbols);
  std::string notes = "/sys/kernel/notes";
  std::string modules = "/proc/modules";
  std::string module_directory = "/sys/module";
};

// Names the kernel's addresses in a log. Its modules, the kernel's image among
// them, are module elements of the log like any other, with their own
// build-ids and run-time addresses; in a module element the image may have any
// name and a module has its own.
// Addresses of another boot must not get names, so each region has to be where
// the symbols are: one of the image begins at `_text` or `_stext`, and one of
// a loaded module holds only symbols of the module by that name.
// Not thread-safe. Reads the symbols when they are first asked for.
class MarkupKernel {
 public:
  // `symbols_path`: a listing, map or blob for the log's kernel, whatever
  // runs here. Empty: the running kernel's own; then build-ids must be equal,
  // and a loaded module must begin where it does now.
  explicit MarkupKernel(std::string symbols_path,
                        RunningKernelPaths paths = {});

  bool has_symbols_of_user() const { return !symbols_path_.empty(); }
  // Reads them; the error names the file.
  Status LoadSymbolsOfUser();

  // Kernels are in the upper half of the addresses, and processes never.
  static bool IsKernelAddress(Address address) {
    return (address.value >> 63) != 0;
  }

  // Whether the region is the running kernel's; the answer is kept until
  // Reset.
  bool IsRunning(const MarkupMmap& mmap);

  // The symbol at an address in `mmap`; its views live until the next call.
  // Nothing: no symbol is there. Fails when the symbols cannot be read or are
  // for another place.
  enum class Kind : uint8_t { kCode, kData };
  Result<std::optional<KernelSymbol>> Find(const MarkupMmap& mmap,
                                           Address address, Kind kind);
  void Reset() { running_.clear(); }

 private:
  bool ComputeIsRunning(const MarkupMmap& mmap) const;
  bool IsAtStart(const MarkupMmap& mmap) const;
  const Result<KernelSymbolSource>& Symbols();

  std::string symbols_path_;
  RunningKernelPaths paths_;
  std::optional<Result<KernelSymbolSource>> symbols_;
  std::vector<Address> starts_;  // of the image: `_text` and `_stext`
  SymbolNameBuffer buffer_;
  std::unordered_map<const MarkupMmap*, bool> running_;
};

}  // namespace ksym
