// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "bpf/profile_abi.h"
#include "bpf/runtime/runtime_abi.h"
#include "daemon/capture/sleeping_frames.h"
#include "daemon/runtime/frame_merge.h"
#include "daemon/runtime/runtime_names.h"
#include "daemon/unwind/unwind_tables.h"
#include "ksym/process/process_image.h"
#include "ksym/runtime/cpython/interpreter.h"

namespace profd {

// The CPython interpreters of sampled processes: tells the sampler where they
// are, and reads what it sends of their code. Not thread-safe.
class CpythonProcesses {
 public:
  // The sampler's maps of that name; borrowed. -1: not loaded.
  struct Maps {
    int processes = -1;
    int files = -1;
  };
  // `names` makes the frames; it lives longer.
  CpythonProcesses(Maps maps, RuntimeNames& names)
      : maps_(maps), names_(names), sleeping_(names) {}

  // Lets the sampler find the interpreter in processes that user space has not
  // seen yet. Gives the bits of runtime_known that are to be set now.
  uint32_t AddFile(const TableFile& file);
  // The process maps the interpreter's file, with that load bias. Gives the
  // same bits.
  uint32_t Add(const ksym::ProcessId& process, uint64_t load_bias,
               const ksym::CpythonInterpreter& interpreter);
  void Forget(const ksym::ProcessId& process);

  void AddCode(const profile_code_record& record, size_t bytes);
  // The frames of a thread whose stack a walk over all threads copied; see
  // SleepingFrames::Read().
  std::optional<RuntimeRuns> ReadSleeper(const profile_copy_record& copy);
  // After each drain.
  void EndInterval() { sleeping_.EndInterval(); }

  size_t size() const { return known_.size(); }
  const RuntimeStatistics::Sleepers& sleepers() const {
    return sleeping_.statistics();
  }

 private:
  uint32_t NumberOf(const ksym::CpythonLayout& layout);

  Maps maps_;
  RuntimeNames& names_;
  SleepingFrames sleeping_;
  std::vector<ksym::CpythonLayout> layouts_;  // by their number
  // Each process's interpreters, in the order of their numbers.
  std::map<ksym::ProcessId, MappedInterpreters> known_;
};

}  // namespace profd
