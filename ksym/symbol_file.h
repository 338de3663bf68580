// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ksym/base/keyed_hash.h"
#include "ksym/base/result.h"
#include "ksym/base/trust.h"
#include "ksym/elf/elf_symbols.h"
#include "ksym/elf/x86_64/start_code.h"
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
  // For code without symbols; both are read when the first such address is
  // asked for.
  std::optional<FunctionRanges> functions;
  std::optional<StartCode> start_code;
  // Finished names by SymbolTable::Match::index, in the pool.
  std::unordered_map<uint32_t, std::string_view, NumberHash> names;
  size_t charged_bytes = 0;

  // The same open file once more. kNotFound: it is not open any more, or not as
  // it was. The code of an errno: there is no descriptor for it.
  Result<OpenedFile> Copy() const;
  // Borrowed; -1: it is not open, or an image in memory.
  int fd() const;
  bool IsOpen() const;
  // Whether the open file is still as it was when it was opened. One fstat.
  bool IsUnchanged() const;
};

using SymbolFileList = std::list<std::pair<FileKey, SymbolFile>>;

}  // namespace ksym
