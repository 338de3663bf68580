// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace profd {

// Reads memory of other threads by process_vm_readv(2), which needs
// CAP_SYS_PTRACE. A page of theirs may be in a file system that never answers,
// or be for userfaultfd(2) to bring: a thread of its own waits for it, and is
// left behind where that takes too long. Such a thread waits until the page is
// there or this process ends, as a fatal signal ends its wait. Not thread-safe.
class ForeignMemory {
 public:
  static constexpr std::chrono::milliseconds kPatience{250};
  // Threads that are left behind; with so many nothing is read any more.
  static constexpr int kMaxGivenUp = 4;

  ForeignMemory();
  ~ForeignMemory();
  ForeignMemory(const ForeignMemory&) = delete;
  ForeignMemory& operator=(const ForeignMemory&) = delete;

  // Reads from that address on, until there is no more or `out` is full;
  // returns how many bytes. 0: nothing there may be read, or it did not come in
  // time. Some 20 us.
  size_t Read(uint32_t tid, uint64_t address, std::span<std::byte> out);

 private:
  class Reader;

  std::shared_ptr<Reader> reader_;  // null: none was needed, or it was given up
  int given_up_ = 0;
};

}  // namespace profd
