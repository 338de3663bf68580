// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/process/shared_path.h"

namespace ksym {

// One executable mapping of a process, as a line of /proc/PID/maps or a
// PERF_RECORD_MMAP2 gives it. Half-open: [start, end).
struct Mapping {
  Address start;
  Address end;
  FileOffset file_offset;  // of start; 0 for anonymous memory
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  // As the kernel shows it: absolute, in the process's own mount namespace,
  // perhaps with " (deleted)"; "[vdso]" and the like; empty if anonymous.
  SharedPath path;

  friend bool operator==(const Mapping&, const Mapping&) = default;
};

// The path of a mapping that stands for memory in which different things were
// mapped while its samples were taken. The kernel gives no such path.
inline constexpr std::string_view kReplacedPath = "[replaced]";

// The path of a mapping that stands for others of which there were too many, or
// whose paths were too long together, to keep each. The kernel gives no such
// path.
inline constexpr std::string_view kTooLargePath = "[too-large]";

// What is kept of one process, as any number of processes may map any number of
// files by paths of any length. The first is what Linux allows by default.
inline constexpr size_t kMaxMappings = size_t{1} << 16;
inline constexpr size_t kMaxPathBytes = size_t{1} << 20;
inline constexpr size_t kMaxOnePathBytes = 4096;  // PATH_MAX

// Whether the bytes that two mappings have in common are of the same file and
// place in it, or of no file in both.
bool HaveSameBytes(const Mapping& a, const Mapping& b);

// What distinguishes one address space from another that once had its pid.
struct ProcessId {
  uint32_t pid = 0;         // thread group id, in the initial pid namespace
  uint32_t exec_count = 0;  // task_struct.self_exec_id: changes at each exec
  uint64_t start_ns = 0;    // start_boottime of the group leader

  friend auto operator<=>(const ProcessId&, const ProcessId&) = default;
};

// The executable mappings of one process at one time, sorted by start and not
// overlapping. A plain value: owns its strings, holds no descriptor.
struct ProcessImage {
  ProcessId id;
  std::vector<Mapping> mappings;

  // The mapping that contains the address, or null. O(log n).
  const Mapping* Find(Address address) const;
};

// Parses the text of /proc/PID/maps; keeps the executable mappings only.
//   7f1c8e000000-7f1c8e155000 r-xp 00026000 fd:00 1234   /usr/lib/libc.so.6
// Lines that are not of this form, or not behind the one before, are skipped
// and counted in *malformed_lines (may be null). Lines without "x" are not read
// to their end. See proc_pid_maps(5). The kernel writes a newline in a path as
// "\012"; it is decoded.
std::vector<Mapping> ParseMaps(std::string_view text, size_t* malformed_lines);

// The executable mappings of a process, sorted, with paths as the process
// itself sees them; also when its first thread has ended and others go on.
// Empty for a kernel thread. kNotFound when the process is gone. Mappings
// beyond the bounds, the last ones, become one with kTooLargePath, to the end
// of user memory; a mapping whose path is beyond them has that path and no
// file. Cost: 5 us, and 0.4 to 2 us per executable mapping, with PROCMAP_QUERY
// (Linux 6.11); before that the whole of /proc/PID/maps is read: twice to three
// times as much, as most mappings are not executable.
struct MapsLimits {
  size_t mappings = kMaxMappings;
  size_t path_bytes = kMaxPathBytes;  // of different paths together
};
Result<std::vector<Mapping>> ReadMaps(uint32_t pid,
                                      const MapsLimits& limits = {});

// Makes the mapping one of kTooLargePath.
void ForgetFile(Mapping& mapping);

// Puts mappings into a list, in their order, within the bounds. Equal paths
// share their text. Not thread-safe.
class MapsCollector {
 public:
  explicit MapsCollector(const MapsLimits& limits) : limits_(limits) {}

  // Takes a mapping that is behind the one before; its path may be known under
  // another text. False: no more are taken.
  bool Add(Mapping mapping);
  std::vector<Mapping> Take() && { return std::move(mappings_); }

 private:
  const MapsLimits limits_;
  PathPool paths_;
  std::vector<Mapping> mappings_;
};

// The numbers of the process's threads but the first, which has its own.
std::vector<uint32_t> OtherThreads(uint32_t pid);

// The build-id of the file that is mapped there, as the kernel read it from
// memory; bytes, empty if it has none or the kernel does not tell (before
// 6.11). `thread`: one of the process.
std::string ReadMappedBuildId(uint32_t thread, const Mapping& mapping);

}  // namespace ksym
