// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

namespace profd::history {

// What goes wrong with the system calls of a process that change files: those
// that write, wait for the disk, make, rename, remove or shorten.
struct DiskFault {
  // The number of the call among these, from 0.
  size_t at = 0;
  // What the call returns instead of being made; 0: the process is killed
  // there.
  int error = 0;
  // So does each later one, as on a disk that stays full or is read-only now.
  bool lasts = false;
};

// What became of a process with a fault.
struct FaultyRun {
  size_t calls = 0;  // that change files, up to its end
  bool was_killed = false;
  int exit_status = 0;  // where it was not
};

// Runs `work` in a child process, whose exit status it returns, and traces it.
// The child has the caller's memory and one thread. Absent: this process may
// not be traced here, or the machine is none that this knows.
std::optional<FaultyRun> RunWithFault(const DiskFault& fault,
                                      const std::function<int()>& work);

}  // namespace profd::history
