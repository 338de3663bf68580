#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/elf/linker_symbols.h"
#include "ksym/markup/markup_symbolizer.h"
#include "ksym/symbolizer.h"
#include "ksym/tools/markup_kernel.h"

namespace ksym {

struct MarkupNamesOptions {
  SymbolizerOptions::Demangle demangle = SymbolizerOptions::Demangle::kOn;
  // Folders with .build-id/ab/cdef.debug below them, in the order in which
  // they are looked at; none: /usr/lib/debug.
  std::vector<std::string> debug_folders;
  std::string kernel_symbols;  // see MarkupKernel
  // Bytes of symbol tables kept; beyond it all are dropped and read again.
  size_t cache_bytes = size_t{1} << 30;
};

// Finds a log's modules by their build-ids and names what is in them. A file
// with another build-id than it lies under is refused. Not thread-safe.
class MarkupNames : public MarkupSymbolizer {
 public:
  explicit MarkupNames(MarkupNamesOptions options);

  Result<std::span<const MarkupFrame>> ResolveCode(const MarkupMmap& mmap,
                                                   Address address) override;
  Result<MarkupDatum> ResolveData(const MarkupMmap& mmap,
                                  Address address) override;
  std::string Demangle(std::string_view linkage_name) override;
  void Reset() override;

 private:
  using File = Result<LinkerSymbols>;

  // A name and where it starts, whatever table it is from.
  struct Found {
    std::string_view name;
    uint64_t offset = 0;
    std::string_view file;
  };
  Result<std::optional<Found>> Find(const MarkupMmap& mmap, Address address,
                                    MarkupKernel::Kind kind);
  const File& FileOf(const MarkupModule& module);
  Result<LinkerSymbols> Load(const std::string& build_id) const;
  void EnforceBytes();
  // The name as it is printed; the same name is looked at once.
  std::string_view Shown(std::string_view name);

  const MarkupNamesOptions options_;
  MarkupKernel kernel_;
  std::unordered_map<std::string, File> files_;  // by build-id
  // Of the modules since the last reset.
  std::unordered_map<const MarkupModule*, const File*> module_files_;
  size_t file_bytes_ = 0;
  // By where the linker's name is.
  std::unordered_map<const char*, std::string> shown_;
  std::string shown_kernel_;
  std::string shown_file_;
  MarkupFrame frame_;
};

}  // namespace ksym
