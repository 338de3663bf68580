// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ksym/base/string_pool.h"
#include "ksym/base/warning_list.h"
#include "ksym/build_id_claims.h"
#include "ksym/debug_file_search.h"
#include "ksym/symbol_file.h"
#include "ksym/symbolizer.h"

namespace ksym {

// The files of all processes, opened early and read late. Bounded twice: by
// descriptors (the least recently used file is closed, and must be pinned
// again through a live process), and by bytes of tables (the least recently
// used table is dropped and read again from its descriptor when needed).
// Not thread-safe.
class SymbolFiles {
 public:
  // `warnings` gets a sentence for each file that is beyond a bound. Borrows
  // all.
  SymbolFiles(const SymbolizerOptions& options, StringPool& pool,
              WarningList& warnings)
      : options_(options), pool_(pool), warnings_(warnings) {}

  // Holds the mapping's file if it is not held: two system calls for a new file
  // that map_files leads to, one for a known file.
  void Pin(const ProcessId& process, const Mapping& mapping);
  // The file with its table loaded, or with state kFailed.
  SymbolFile& Load(const ProcessId& process, const Mapping& mapping);
  // The file of that build-id whose word counts (Judge in ksym/base/trust.h),
  // of several the one that was loaded last, read again if there is a source of
  // debug files now that was not asked for it; null: there is none.
  SymbolFile* LoadAgain(std::string_view build_id);
  // See Symbolizer::OpenAgain.
  Result<Symbolizer::ProgramFile> OpenAgain(std::string_view build_id) const;
  void SetDebugFileSource(DebugFileSource source) {
    fetch_ = std::move(source);
  }
  // Fills in what the file knows about the byte: name, symbol_offset,
  // build_id and reason; without a name function_start.
  void Resolve(SymbolFile& file, FileOffset offset, UserSymbol& symbol);
  // Makes a file of an image in memory, which is not counted or evicted.
  SymbolFile LoadImage(std::string image);

  const Symbolizer::Statistics& statistics() const { return statistics_; }

 private:
  using Files = SymbolFileList;

  SymbolFile& Touch(FileKey key);
  SymbolFile& TouchShared(const Mapping& mapping);
  SymbolFile& TouchOwn(const ProcessId& process, const Mapping& mapping,
                       const OpenedFile& opened);
  SymbolFile& FileOf(const ProcessId& process, const Mapping& mapping);
  SymbolFile& Refused();
  bool IsRefused(const SymbolFile& file) const {
    return refused_ && &file == &*refused_;
  }
  SymbolFile& Open(const ProcessId& process, const Mapping& mapping,
                   SymbolFile& file);
  bool SpeaksForAll(const OpenedFile& opened) const;
  void FailToOpen(const ProcessId& process, const Error& error,
                  SymbolFile& file);
  void Read(const ProcessId& process, const std::string& path,
            SymbolFile& file);
  DebugFileFinder FinderOf(const SymbolFile& file) const {
    return MakeDebugFileFinder(file, options_, fetch_, checksums_);
  }
  void CloseIfChanged(SymbolFile& file);
  void CloseIfReplaced(const ProcessId& process, const Mapping& mapping,
                       SymbolFile& file);
  void Close(SymbolFile& file);
  static bool MayRetry(const ProcessId& process, const SymbolFile& file);
  std::optional<std::string_view> NameOf(SymbolFile& file,
                                         const SymbolTable::Match& match,
                                         Unresolved& reason);
  size_t ReadFunctions(SymbolFile& file);
  void ResolveFunction(SymbolFile& file, FileOffset offset, UserSymbol& symbol);
  void Charge(SymbolFile& file, size_t bytes);
  void Drop(SymbolFile& file);
  void EnforceDescriptors();
  void EnforceBytes();

  const SymbolizerOptions& options_;
  StringPool& pool_;
  WarningList& warnings_;
  Files files_;  // most recently used first; none is ever removed
  // Stands for all that there is no room for.
  std::optional<SymbolFile> refused_;
  std::unordered_map<FileKey, Files::iterator, FileKeyHash> index_;
  // What mappings of one process lead to, where the numbers do not tell it.
  // Bounded; what is forgotten is opened again.
  std::unordered_map<FileKey, Files::iterator, FileKeyHash> own_;
  BuildIdClaims build_ids_;
  DebugFileSource fetch_;
  std::shared_ptr<DebugFileChecksums> checksums_ =
      std::make_shared<DebugFileChecksums>();
  size_t open_files_ = 0;
  Symbolizer::Statistics statistics_;
};

}  // namespace ksym
