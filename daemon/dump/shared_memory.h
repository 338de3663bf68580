// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace profd {

// Memory of a process that others can map as well.
struct SharedMapping {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t offset = 0;  // in the file of `start`
  std::string_view device;
  uint64_t inode = 0;
};

// The mappings in the text of /proc/PID/maps, as views into it. A line that has
// another form is passed over.
std::vector<SharedMapping> ParseSharedMappings(std::string_view maps);

// Whether `mine` has a byte that lies at the address in `others`.
bool HasByteOf(const std::vector<SharedMapping>& mine,
               const std::vector<SharedMapping>& others, uint64_t address);

// Answers of this machine, from /proc; a process whose mappings cannot be read,
// or have more than kMaxMapsBytes, shares nothing. Each process is read once,
// at the cost of 0.1 ms per 1,000 mappings. Not thread-safe.
class SharedMemory {
 public:
  static constexpr size_t kMaxMapsBytes = size_t{4} << 20;

  bool AreShared(uint32_t pid, uint32_t other_pid, uint64_t address);

 private:
  struct Process {
    std::string text;
    std::vector<SharedMapping> mappings;
  };
  const Process& Read(uint32_t pid);

  std::map<uint32_t, Process> processes_;
};

}  // namespace profd
