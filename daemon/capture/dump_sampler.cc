// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/dump_sampler.h"

#include <chrono>
#include <thread>
#include <utility>

#include "bpf/dump_abi.h"
#include "daemon/capture/thread_records.h"

namespace profd {

DumpSampler::DumpSampler(BpfObject& object)
    : object_(object), kinds_({ThreadKind()}) {}

ksym::Result<std::vector<SampledCount>> DumpSampler::Take(uint32_t set) {
  return std::exchange(counts_[set], {});
}

ksym::Status DumpSampler::ReadThreads(const RecordTaker& take) {
  if (!has_ended_) return {};
  // The scheduler writes down when this thread goes on, by which its clock is
  // known.
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return ReadThreadRecords(object_.dump_fd(), [&](const profile_record& record,
                                                  size_t bytes) {
    take(record, bytes);
    if (record.type != PROFILE_RECORD_DUMP || record.set >= PROFILE_SETS) {
      return;
    }
    const auto& thread = reinterpret_cast<const dump_thread_record&>(record);
    // The CPU's samples have what runs.
    if ((thread.flags & DUMP_RUNNING) != 0) return;
    ++taken_[record.set];
    if ((thread.flags & DUMP_COPIED) != 0) return;
    SampledCount count = {.key = thread.key, .kind = 0, .count = 1};
    if ((thread.flags & DUMP_USER) != 0 && object_.dumps_user_stacks()) {
      count.key.user_stack = PROFILE_STACK_FAULT;
    }
    counts_[record.set].push_back(count);
  });
}

ksym::Result<profile_stats> DumpSampler::ReadStats(uint32_t set) {
  profile_stats stats = {};
  stats.taken = taken_[set];
  return stats;
}

}  // namespace profd
