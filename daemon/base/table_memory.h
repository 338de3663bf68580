// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "ksym/base/table_room.h"

namespace profd {

// The memory that all tables together may take while they are made of files,
// which is several times of what they have in the end. Several large files of
// one who means harm would add up, as one thread reads symbols and another one
// call-frame information. Small tables pass by a large one. Thread-safe.
class TableMemory {
 public:
  // Room for the largest of one kind and some small ones of the other.
  static constexpr uint64_t kBytes = uint64_t{256} << 20;

  explicit TableMemory(uint64_t bytes = kBytes) : bytes_(bytes) {}

  // Waits until so much is left, or nobody has any, and has it until what is
  // returned goes. A thread must not wait while it has some. It must not
  // outlive this.
  std::shared_ptr<void> Take(uint64_t bytes);

  // That of the process, as a function that libksym takes.
  static ksym::TableRoom OfProcess();

 private:
  void Give(uint64_t bytes);

  const uint64_t bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t used_ = 0;  // guarded by mutex_
};

}  // namespace profd
