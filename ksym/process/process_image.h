#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"

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
  std::string path;

  friend bool operator==(const Mapping&, const Mapping&) = default;
};

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
// and counted in *malformed_lines (may be null); of a line without "x" no more
// is looked at. See proc_pid_maps(5). The kernel writes a newline in a path as
// "\012"; it is decoded.
std::vector<Mapping> ParseMaps(std::string_view text, size_t* malformed_lines);

// Reads and parses /proc/<pid>/maps. kNotFound when the process is gone.
Result<std::vector<Mapping>> ReadMaps(uint32_t pid);

}  // namespace ksym
