// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/process/file_opener.h"
#include "ksym/process/process_image.h"

namespace ksym {

// The functions a just-in-time compiler reports in /tmp/perf-PID.map, one per
// line: address and size in hexadecimal, then the name to the line's end
// (tools/perf/Documentation/jit-interface.txt).
//   7f1c8e001000 1a0 LazyCompile:~fib /home/a/fib.js:1
// The compiler appends while it runs and reuses memory, so a later line wins
// over an earlier one where they overlap. A line that is not of this form is
// skipped and counted; a last line without its newline waits for the rest.
// Long names are cut (ksym/base/bounded_name.h).
class PerfMap {
 public:
  // A map that goes on beyond these is not read further.
  static constexpr size_t kMaxEntries = size_t{1} << 20;
  static constexpr size_t kMaxNameBytes = size_t{64} << 20;
  // A longer line is malformed.
  static constexpr size_t kMaxLineBytes = size_t{64} << 10;

  struct Match {
    std::string_view name;  // valid until the next Append
    Address start;
  };

  // Takes the next part of the file's text, cut anywhere.
  void Append(std::string_view text);
  // O(log entries); the first call after Append sorts, O(n log n).
  std::optional<Match> Find(Address address);

  size_t size() const { return entries_.size(); }
  size_t malformed_lines() const { return malformed_lines_; }
  bool full() const { return full_; }
  size_t memory_bytes() const;

 private:
  struct Entry {
    uint64_t start = 0;
    uint64_t end = 0;
    uint32_t name = 0;  // offset in names_
    uint32_t name_size = 0;
  };
  struct Piece {
    uint64_t start = 0;
    uint64_t end = 0;
    uint32_t entry = 0;
  };

  bool AddLine(std::string_view line);
  void Cut();

  std::string torn_line_;
  std::string names_;
  std::vector<Entry> entries_;  // in the order of the file
  std::vector<Piece> pieces_;   // disjoint, sorted; made by Cut
  size_t malformed_lines_ = 0;
  bool cut_ = true;
  bool full_ = false;
};

// The perf map of a live process, opened safely and read again as it grows.
// The file is looked for by the process's own (innermost) pid below its own
// root, then as the initial namespace's /tmp/perf-PID.map. It must be a regular
// file that nobody but root or the process's user may write to (MayNameMemory
// in ksym/base/trust.h), reached through no link, and not older than the
// process.
class PerfMapFile {
 public:
  // Several times what large programs write. Any process can write one, and
  // reading it is our time and memory.
  static constexpr uint64_t kMaxFileBytes = uint64_t{32} << 20;

  // kNotFound: there is none; kPermission: the process or file is not ours
  // to read; kInvalid: the file must not be trusted (owner, age, a link);
  // kUnsupported: it is not a regular file. The message has the path as the
  // process sees it.
  static Result<PerfMapFile> Open(
      const ProcessId& process,
      std::shared_ptr<FileOpener> opener = DirectFileOpener());

  // Reads what was appended since the last call; starts over when the file
  // has shrunk. Cost when nothing changed: one fstat. kLimit, before anything
  // is read: the file is larger than kMaxFileBytes. A copy of a remote file is
  // made anew every kCopyPeriod at the most; what fails then leaves the old
  // one.
  static constexpr std::chrono::seconds kCopyPeriod{2};
  Status Refresh();
  std::optional<PerfMap::Match> Find(Address address) {
    return map_.Find(address);
  }
  size_t memory_bytes() const { return map_.memory_bytes(); }
  // Whether there were more entries than are kept.
  bool full() const { return map_.full(); }
  // As the process sees it.
  const std::string& path() const { return path_; }

 private:
  PerfMapFile() = default;
  Result<uint64_t> SizeNow();

  ProcessId process_;
  uint32_t root_of_ = 0;  // the process whose root has it; 0: this one's
  std::shared_ptr<FileOpener> opener_;
  OpenedFile file_;
  std::chrono::steady_clock::time_point opened_;
  std::string path_;
  uint64_t read_bytes_ = 0;
  PerfMap map_;
};

}  // namespace ksym
