// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "bpf/profile_abi.h"
#include "bpf/waiting_abi.h"
#include "daemon/capture/foreign_memory.h"
#include "daemon/capture/sampler.h"

namespace profd {

// Passes records on and puts in the stacks of threads that wait, where the
// programs cannot read them (before Linux 5.18). Reading needs CAP_SYS_PTRACE;
// a stack that cannot be read, does not come in time, or is of a thread that
// went on meanwhile, stays without bytes. Costs some 20 us for each.
class SleepingStacks {
 public:
  // `take` is called during Take(). Both outlive this.
  SleepingStacks(ForeignMemory& memory, const Sampler::RecordTaker& take);

  // A thread's PROFILE_RECORD_COPY comes behind its PROFILE_RECORD_THREAD.
  void Take(const profile_record& record, size_t bytes);

 private:
  void AddStack(const profile_copy_record& record);
  bool SleepsYet(uint32_t tid) const;

  ForeignMemory& memory_;
  const Sampler::RecordTaker& take_;
  wait_thread_record thread_ = {};  // the last one
  std::unique_ptr<profile_piece_record> piece_;
};

}  // namespace profd
