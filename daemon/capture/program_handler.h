// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace profd {

// Has libbpf load programs of one kind by the number of the type that they are
// attached to (see KernelBtf), while this lives. libbpf knows nothing of their
// sections' names: with one of its own it would read all of the kernel's types
// to find the number. Handlers are the process's: one of a kind at a time.
class ProgramHandler {
 public:
  enum class Kind : uint8_t {
    kSwitch,            // at the tracepoint sched_switch
    kWaking,            // at sched_waking
    kIterator,          // walks over threads
    kSleepingIterator,  // the same, and may read what others' memory has
  };
  ProgramHandler(Kind kind, uint32_t btf_id);
  ~ProgramHandler();
  ProgramHandler(const ProgramHandler&) = delete;
  ProgramHandler& operator=(const ProgramHandler&) = delete;

 private:
  int handler_ = 0;
};

}  // namespace profd
