// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/base/table_room.h"
#include "ksym/elf/debug_file.h"
#include "ksym/process/file_opener.h"
#include "ksym/process/process_image.h"

namespace ksym {

// Why an address has no name. kNone: it has one.
enum class Unresolved : uint8_t {
  kNone,
  kUnmapped,      // no mapping of the process contains the address
  kNoProcess,     // the process was gone before its mappings could be read
  kAnonymous,     // in memory without a file (JIT code, a stack)
  kNoSymbols,     // the file has no symbol table (stripped)
  kNoSymbol,      // the file has symbols, but none covers the address
  kNoPermission,  // the file or the table could not be opened
  kGone,          // the file could not be found any more
  kFileChanged,   // another file is now where the mapped one was
  kMalformed,     // the file is not valid ELF
  kTooLarge,      // a size limit of ours was reached
  kAmbiguous,     // several symbols were there while the samples were taken
  kMapRefused,    // there is a perf map that must not be trusted
  kNotInTime,     // the file did not answer, or was not read, in time
};
// The name used in JSON and in docs/formats.md, e.g. "no-symbol".
std::string_view UnresolvedName(Unresolved reason);

// What is known of one address. The views live as long as the Symbolizer.
struct UserSymbol {
  std::string_view name;    // demangled unless switched off; empty: see reason
  std::string_view module;  // path of the mapped file as the process sees it
  std::string_view build_id;   // lower-case hex, empty if the file has none
  FileOffset file_offset;      // the looked-up address's byte in that file
  uint64_t symbol_offset = 0;  // bytes from the symbol's start
  Unresolved reason = Unresolved::kNone;
  // Where code without a symbol (kNoSymbols, kNoSymbol) has its function begin
  // by the file's call-frame information, as the file's headers count.
  std::optional<ElfAddress> function_start = {};
};

class ProgramFiles;

struct SymbolizerOptions {
  enum class Demangle : uint8_t { kOn, kOff };
  Demangle demangle = Demangle::kOn;
  // Where files are looked for: as the live process sees them, through
  // /proc/PID, or by their path on this machine (a replayed capture).
  enum class Files : uint8_t { kOfProcess, kOfHost };
  Files files = Files::kOfProcess;
  // Opens the files of processes; null: a direct one.
  std::shared_ptr<FileOpener> opener = {};
  // Finds all files instead, and no path of this machine is opened; borrowed.
  ProgramFiles* program_files = nullptr;
  // Bytes of symbol tables kept; the least recently used go first.
  size_t cache_bytes = size_t{256} << 20;
  // Files held open at once; beyond it the least recently used one is closed
  // and can only be named again through a live process that maps it. Keep it
  // below RLIMIT_NOFILE.
  size_t max_open_files = 1024;
  // Asked before a file's symbols are read.
  TableRoom table_room = {};
  // Files ever seen, some 500 bytes each; beyond it those of others are
  // kTooLarge until there is a new Symbolizer.
  size_t max_files = size_t{1} << 16;
  // Bytes of different names ever returned, which are kept for the callers'
  // views; beyond it new names are kTooLarge until there is a new Symbolizer.
  size_t max_name_bytes = size_t{256} << 20;
  // The ELF image of the vdso; empty: this process's own.
  std::string vdso_image = {};
};

// Names user-space addresses. Files are opened through the process that maps
// them, checked to be the mapped ones (device and inode), and read with
// pread, never mapped: a profiled process owns them and may be hostile. One
// table per file, shared by all processes. Not thread-safe; no thread of its
// own; never logs.
class Symbolizer {
 public:
  explicit Symbolizer(SymbolizerOptions options);
  ~Symbolizer();
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  // Holds the image's executable files (O_PATH), so that they can be opened and
  // read after the process has exited. Cost: one open per new file.
  void Pin(const ProcessImage& image);

  // The symbol that covers `address`. Pass a return address less one, or the
  // frame is named for the call's successor. Cost: the first address in a
  // file reads its table; the first one in a symbol reads and demangles its
  // name; the first one that no symbol covers reads where the file's functions
  // begin, 0.1 us for each; every other one is a binary search.
  UserSymbol Resolve(const ProcessImage& image, Address address);

  // Where debug files come from, from now on, that neither the process's root
  // nor this machine has. It is waited for, so give it when nothing else does.
  void SetDebugFileSource(DebugFileSource source);

  // Names a byte of a file that was loaded before, for what Resolve() had no
  // name when there was no such source. `build_id` and `offset` are those of
  // its answer; reason kGone: no file of that build-id is known.
  UserSymbol ResolveAgain(std::string_view build_id, FileOffset offset);

  // A file that was loaded before, to read its debug data from: with a
  // descriptor of its own, so that any thread may. `build_id` is that of
  // Resolve()'s answer. kNotFound: no such file is known, it is not open any
  // more, or has changed.
  struct ProgramFile {
    ByteSource source;
    DebugFileFinder finder;
  };
  Result<ProgramFile> OpenAgain(std::string_view build_id) const;

  struct Statistics {
    uint64_t files_known = 0;  // ever seen; some 500 bytes each, kept for good
    uint64_t files_loaded = 0;
    uint64_t files_failed = 0;
    uint64_t symbols = 0;
    uint64_t cache_bytes = 0;
    uint64_t files_evicted = 0;   // tables dropped for want of cache_bytes
    uint64_t files_closed = 0;    // for want of max_open_files
    uint64_t files_given_up = 0;  // by the opener, for want of an answer
    uint64_t perf_maps_refused = 0;
    uint64_t name_bytes = 0;  // of max_name_bytes
  };
  Statistics statistics() const;

  // One sentence for each file or perf map that a name was wanted from and that
  // could not be used, or not all of it, since the last call: which, whose, and
  // why. WarningList::kMax at the most in all; the last one says that there
  // are more.
  std::vector<std::string> TakeWarnings();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ksym
