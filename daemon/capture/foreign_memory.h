// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "daemon/base/patient_thread.h"
#include "ksym/base/address.h"
#include "ksym/runtime/memory.h"

namespace profd {

// Memory of another thread, as process_vm_readv(2) reads it, which needs
// CAP_SYS_PTRACE. A page of it may be in a file system that never answers, or
// be for userfaultfd(2) to bring, so that a read may never come back.
class ThreadMemory final : public ksym::Memory {
 public:
  // Reads no more than so many bytes, and as many times 64, in all.
  ThreadMemory(uint32_t tid, size_t max_bytes)
      : tid_(tid), bytes_left_(max_bytes) {}
  // Some 0.7 us.
  size_t ReadSome(ksym::Address address,
                  std::span<std::byte> out) const override;
  // Something was not read as it would have been too much.
  bool is_used_up() const { return is_used_up_; }

 private:
  uint32_t tid_;
  mutable size_t bytes_left_;
  mutable bool is_used_up_ = false;
};

// Reads memory of other threads in a thread of its own, which is left behind
// where that takes too long (PatientThread). Not thread-safe.
class ForeignMemory {
 public:
  static constexpr std::chrono::milliseconds kPatience{250};
  // Threads that wait, left behind; while there are so many nothing is read.
  static constexpr int kMaxLeftBehind = 4;

  ForeignMemory();

  // Reads from that address on, until there is no more or `out` is full;
  // returns how many bytes. 0: nothing there may be read, or it did not come in
  // time. Some 20 us.
  size_t Read(uint32_t tid, uint64_t address, std::span<std::byte> out);

  // Has the thread do that, which reads memory; false: it was not begun, or is
  // not done in time and may be at it for ever. So all that it uses is its own.
  bool Run(std::function<void()> work) { return thread_.Run(std::move(work)); }

 private:
  PatientThread thread_;
};

}  // namespace profd
