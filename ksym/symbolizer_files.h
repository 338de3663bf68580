#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ksym/base/string_pool.h"
#include "ksym/base/warning_list.h"
#include "ksym/elf/elf_symbols.h"
#include "ksym/process/mapped_file.h"
#include "ksym/process/process_image.h"
#include "ksym/symbolizer.h"

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

  friend bool operator==(const FileKey&, const FileKey&) = default;
};

struct FileKeyHash {
  size_t operator()(const FileKey& key) const;
};

// What is known of one mapped file, from the first sight of it on.
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
  OpenedFile opened;  // its descriptor moves into `symbols` when loaded
  std::optional<ElfSymbols> symbols;
  std::string_view build_id;  // in the pool; known once loaded
  // Through whose root, and beside what, debug files were looked for; the path
  // is in the pool.
  ProcessId read_for;
  std::string_view path;
  bool fetch_asked = false;  // whether the source of debug files was
  // Finished names by SymbolTable::Match::index, in the pool.
  std::unordered_map<uint32_t, std::string_view> names;
  size_t charged_bytes = 0;
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
  // The file of that build-id that was loaded last, read again if there is a
  // source of debug files now that was not asked for it; null: none was.
  SymbolFile* LoadAgain(std::string_view build_id);
  // See Symbolizer::OpenAgain.
  Result<Symbolizer::ProgramFile> OpenAgain(std::string_view build_id) const;
  void SetDebugFileSource(DebugFileSource source) {
    fetch_ = std::move(source);
  }
  // Fills in what the file knows about the byte: name, symbol_offset,
  // build_id and reason.
  void Resolve(SymbolFile& file, FileOffset offset, UserSymbol& symbol);
  // Makes a file of an image in memory, which is not counted or evicted.
  SymbolFile LoadImage(std::string image);

  const Symbolizer::Statistics& statistics() const { return statistics_; }

 private:
  using Files = std::list<std::pair<FileKey, SymbolFile>>;

  SymbolFile& Touch(const Mapping& mapping);
  SymbolFile& Refused();
  void Open(const ProcessId& process, const Mapping& mapping, SymbolFile& file);
  void FailToOpen(const ProcessId& process, const Error& error,
                  SymbolFile& file);
  void Read(const ProcessId& process, const std::string& path,
            SymbolFile& file);
  DebugFileFinder FinderOf(const ProcessId& process,
                           const std::string& path) const;
  void CloseIfChanged(SymbolFile& file);
  std::optional<std::string_view> NameOf(SymbolFile& file,
                                         const SymbolTable::Match& match,
                                         Unresolved& reason);
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
  // By build-id; values are elements of files_, which are never removed.
  std::unordered_map<std::string_view, Files::iterator> by_build_id_;
  DebugFileSource fetch_;
  std::shared_ptr<DebugFileChecksums> checksums_ =
      std::make_shared<DebugFileChecksums>();
  size_t open_files_ = 0;
  Symbolizer::Statistics statistics_;
};

}  // namespace ksym
