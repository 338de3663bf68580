// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ksym/base/string_pool.h"
#include "ksym/base/trust.h"
#include "ksym/base/warning_list.h"
#include "ksym/elf/elf_symbols.h"
#include "ksym/process/mapped_file.h"
#include "ksym/process/process_image.h"
#include "ksym/symbolizer.h"
#include "ksym/unwind/function_ranges.h"

namespace ksym {

// A file while it is held open: the descriptor keeps the kernel from using
// its inode number again, so the three numbers name it.
struct FileKey {
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  // Where the inode is not known; and on devices that are none (major 0): an
  // overlay numbers the files of each of its layers.
  std::string_view path;
  // The numbers are those of the open file and not of a mapping.
  bool is_of_descriptor = false;
  // The process whose mapping it is, where others may have another file behind
  // the same numbers; none: everybody's.
  ProcessId process = {};

  friend bool operator==(const FileKey&, const FileKey&) = default;
};

struct FileKeyHash {
  size_t operator()(const FileKey& key) const;
};

// All that is known of one mapped file, from the first sight of it on.
struct SymbolFile {
  enum class State : uint8_t {
    kClosed,  // not tried yet, or evicted
    kPinned,  // held, or open after its table was dropped; not read
    kLoaded,  // open, `symbols` is there
    kFailed,  // `reason` says why; never loaded again by Resolve
  };

  State state = State::kClosed;
  Unresolved reason = Unresolved::kNone;
  // For which process opening failed last, and how often it did.
  ProcessId tried;
  uint32_t failures = 0;
  // When that was, or when a remote one was looked at last.
  std::chrono::steady_clock::time_point looked;
  OpenedFile opened;  // its descriptor moves into `symbols` when loaded
  FileOwner owner;    // of what was opened last
  std::optional<ElfSymbols> symbols;
  std::string_view build_id;  // in the pool; known once loaded
  // Through whose root, and beside what, debug files were looked for; the path
  // is in the pool.
  ProcessId read_for;
  std::string_view path;
  bool fetch_asked = false;  // whether the source of debug files was
  // For code without symbols; read when the first such address is asked for.
  std::optional<FunctionRanges> functions;
  // Finished names by SymbolTable::Match::index, in the pool.
  std::unordered_map<uint32_t, std::string_view> names;
  size_t charged_bytes = 0;

  // Borrowed; -1: it is not open, or an image in memory.
  int fd() const;
  bool IsOpen() const;
  // Whether the open file is still as it was when it was opened. One fstat.
  bool IsUnchanged() const;
};

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
  using Files = std::list<std::pair<FileKey, SymbolFile>>;

  // What one build-id stands for.
  struct Claimed {
    Files::iterator file;  // an element of files_; these are never removed
    bool is_disputed = false;
  };

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
  void ClaimBuildId(Files::iterator file);
  void FailToOpen(const ProcessId& process, const Error& error,
                  SymbolFile& file);
  void Read(const ProcessId& process, const std::string& path,
            SymbolFile& file);
  DebugFileFinder FinderOf(const SymbolFile& file) const;
  void CloseIfChanged(SymbolFile& file);
  void CloseIfReplaced(const ProcessId& process, const Mapping& mapping,
                       SymbolFile& file);
  void Close(SymbolFile& file);
  static bool MayRetry(const ProcessId& process, const SymbolFile& file);
  std::optional<std::string_view> NameOf(SymbolFile& file,
                                         const SymbolTable::Match& match,
                                         Unresolved& reason);
  std::optional<ElfAddress> FindFunction(SymbolFile& file, FileOffset offset);
  void Charge(SymbolFile& file, size_t bytes);
  void Drop(SymbolFile& file);
  void EnforceDescriptors();
  void EnforceBytes();

  const SymbolizerOptions& options_;
  StringPool& pool_;
  WarningList& warnings_;
  Files files_;  // most recently used first
  // Stands for all that there is no room for.
  std::optional<SymbolFile> refused_;
  std::unordered_map<FileKey, Files::iterator, FileKeyHash> index_;
  // What mappings of one process lead to, where the numbers do not tell it.
  // Bounded; what is forgotten is opened again.
  std::unordered_map<FileKey, Files::iterator, FileKeyHash> own_;
  std::unordered_map<std::string_view, Claimed> by_build_id_;
  DebugFileSource fetch_;
  std::shared_ptr<DebugFileChecksums> checksums_ =
      std::make_shared<DebugFileChecksums>();
  size_t open_files_ = 0;
  Symbolizer::Statistics statistics_;
};

}  // namespace ksym
