// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "bpf/profile_abi.h"
#include "daemon/capture/foreign_memory.h"
#include "daemon/runtime/frame_merge.h"
#include "daemon/runtime/runtime_names.h"
#include "ksym/process/process_image.h"
#include "ksym/runtime/cpython/interpreter.h"

namespace ksym {
struct CpythonFrames;
}

namespace profd {

// An interpreter in a process.
struct MappedInterpreter {
  ksym::CpythonInterpreter found;
  uint64_t load_bias = 0;
};
using MappedInterpreters =
    std::shared_ptr<const std::vector<MappedInterpreter>>;

// The frames that runtimes keep of threads that do not run: the programs have
// those of the thread that is sampled alone. They are read here, by a thread
// that may be given up, after a walk over all threads has sent the native
// stack. They count if the thread has not run since. Needs CAP_SYS_PTRACE. Not
// thread-safe.
class SleepingFrames {
 public:
  // Outlives this; gets the names of code.
  explicit SleepingFrames(RuntimeNames& names) : names_(names) {}

  // Time that reading takes in an interval, of all and of one process, about.
  static constexpr std::chrono::milliseconds kMaxTime{2000};
  static constexpr std::chrono::milliseconds kMaxTimeOfOne{1000};
  // Memory that is read of a thread.
  static constexpr size_t kMaxBytes = size_t{4} << 20;

  // Those of the thread whose stack the copy has, without places. Nothing: it
  // has no frames of these, or they could not be read in time, which is
  // counted. Some 100 us for 30 frames.
  std::optional<RuntimeRuns> Read(const profile_copy_record& copy,
                                  const MappedInterpreters& interpreters);
  // After each drain.
  void EndInterval();

  const RuntimeStatistics::Sleepers& statistics() const { return statistics_; }

 private:
  // Code whose names were read in this interval, by ids. Shared with the thread
  // that reads, which keeps it when it is given up.
  using KnownCodes = std::unordered_set<uint64_t>;
  struct Reading;

  bool HasTimeFor(const ksym::ProcessId& process) const;
  void Spend(const ksym::ProcessId& process, std::chrono::nanoseconds time);
  RuntimeRuns Decode(const profile_copy_record& copy, const Reading& reading,
                     const ksym::CpythonFrames& frames);

  RuntimeNames& names_;
  ForeignMemory memory_;
  std::shared_ptr<KnownCodes> known_ = std::make_shared<KnownCodes>();
  std::chrono::nanoseconds spent_{};  // in this interval
  std::map<ksym::ProcessId, std::chrono::nanoseconds> spent_on_;
  RuntimeStatistics::Sleepers statistics_;
};

}  // namespace profd
