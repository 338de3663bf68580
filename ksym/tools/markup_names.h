// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ksym/base/keyed_hash.h"
#include "ksym/base/result.h"
#include "ksym/dwarf/dwarf_places.h"
#include "ksym/gsym/gsym_lookup.h"
#include "ksym/markup/markup_symbolizer.h"
#include "ksym/symbolizer.h"
#include "ksym/tools/markup_kernel.h"
#include "ksym/tools/module_finder.h"

namespace ksym {

struct MarkupNamesOptions {
  SymbolizerOptions::Demangle demangle = SymbolizerOptions::Demangle::kOn;
  ModuleFinder::Places places;
  std::string kernel_symbols;  // see MarkupKernel
  // Bytes of symbols and debug data kept; beyond it all are dropped and read
  // again.
  size_t cache_bytes = size_t{1} << 30;
};

// Finds a log's modules by their build-ids and names what is in them. A file
// with another build-id than it lies under is refused. Not thread-safe.
class MarkupNames : public MarkupSymbolizer {
 public:
  explicit MarkupNames(MarkupNamesOptions options);

  // Reads `kernel_symbols` now, so that a wrong file is known before there is
  // an address of the kernel; else they are read with the first one.
  Status LoadKernelSymbols() { return kernel_.LoadSymbolsOfUser(); }

  Result<std::span<const MarkupFrame>> ResolveCode(const MarkupMmap& mmap,
                                                   Address address) override;
  Result<MarkupDatum> ResolveData(const MarkupMmap& mmap,
                                  Address address) override;
  std::string Demangle(std::string_view linkage_name) override;
  void Reset() override;

  // A line about each file some of whose debug data could not be used.
  const std::set<std::string>& NoteProblems();

 private:
  using File = Result<ModuleFile>;

  // Null: the kernel's symbols answer.
  Result<ModuleFile*> FindFile(const MarkupMmap& mmap);
  // Why a file does not say what is in a region of the kernel; empty: it does.
  static std::string WhyNotOfKernel(const ModuleFile& file,
                                    const MarkupMmap& mmap);
  File& FileOf(const MarkupModule& module);
  Result<std::optional<MarkupDatum>> FindInKernel(const MarkupMmap& mmap,
                                                  Address address,
                                                  MarkupKernel::Kind kind);
  void Resolve(ModuleFile& file, ElfAddress address);
  void AddDwarfFrames(DwarfPlaces& dwarf, ElfAddress address);
  uint64_t AddGsymFrames(const GsymFile& gsym, ElfAddress address);
  void DropFiles();
  // The name as it is printed; the same name is looked at once.
  std::string_view Shown(std::string_view name);
  // The same of a path, whose parts stay where they are.
  std::string_view ShownPath(std::string_view directory, std::string_view base);

  const MarkupNamesOptions options_;
  const ModuleFinder finder_;
  MarkupKernel kernel_;
  std::unordered_map<std::string, File, TextHash> files_;  // by build-id
  // The files of the modules since the last reset.
  std::unordered_map<const MarkupModule*, File*> module_files_;
  size_t file_bytes_ = 0;
  // By where the name is, or the path's parts are.
  std::unordered_map<const char*, std::string> shown_;
  std::map<std::pair<const char*, const char*>, std::string> shown_paths_;
  std::string shown_kernel_;
  std::vector<DwarfPlace> places_;
  GsymAnswer gsym_answer_;
  std::vector<MarkupFrame> frames_;
  std::set<std::string> problems_;
};

}  // namespace ksym
