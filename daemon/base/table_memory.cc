// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/table_memory.h"

namespace profd {

std::shared_ptr<void> TableMemory::Take(uint64_t bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return used_ == 0 || (used_ <= bytes_ && bytes <= bytes_ - used_);
  });
  used_ += bytes;
  return {this, [bytes](TableMemory* memory) { memory->Give(bytes); }};
}

void TableMemory::Give(uint64_t bytes) {
  {
    const std::scoped_lock lock(mutex_);
    used_ -= bytes;
  }
  changed_.notify_all();
}

ksym::TableRoom TableMemory::OfProcess() {
  static TableMemory memory;
  return [](uint64_t bytes) { return memory.Take(bytes); };
}

}  // namespace profd
