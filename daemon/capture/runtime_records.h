// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "bpf/runtime/runtime_abi.h"
#include "daemon/base/steady_clock.h"
#include "daemon/capture/copied_code.h"
#include "daemon/capture/java_names.h"
#include "daemon/capture/runtime_cpython.h"
#include "daemon/capture/runtime_hotspot.h"
#include "daemon/capture/runtime_v8.h"
#include "daemon/profile/raw_stack_table.h"
#include "daemon/profile/runtime_frame.h"
#include "daemon/runtime/code_namer.h"
#include "daemon/runtime/frame_merge.h"
#include "daemon/runtime/runtime_names.h"
#include "daemon/unwind/unwind_tables.h"
#include "ksym/process/process_image.h"

namespace profd {

// Descriptors of the sampler's maps of that name; borrowed. -1: not loaded.
struct RuntimeMapFds {
  int processes = -1;
  int files = -1;
  int codes = -1;
  int v8 = -1;
  int hotspot = -1;
};
inline constexpr uint32_t kRuntimeProcesses = 8192;
inline constexpr uint32_t kRuntimeFiles = 256;
inline constexpr uint32_t kRuntimePlaces = 2048;
inline constexpr uint32_t kRuntimeCodes = 16384;
inline constexpr uint32_t kRuntimeBudgets = 4096;

// The runtimes of sampled processes: tells the sampler where they are, and
// makes frames of what it found there. Not thread-safe.
class RuntimeRecords {
 public:
  // `known` is the sampler's runtime_known, not null.
  RuntimeRecords(RuntimeMapFds fds, uint32_t* known)
      : codes_(fds.codes),
        known_(known),
        cpython_({.processes = fds.processes, .files = fds.files}, names_),
        v8_(fds.v8, names_),
        hotspot_(fds.hotspot, java_, copied_code_) {
    SetCodeNamer(kJavaScriptCode, v8_.namer());
    SetCodeNamer(kJavaCompiled, java_);
    SetCodeNamer(kJavaInterpreted, java_);
    SetCodeNamer(kJavaStub, java_);
  }
  // Its own namers are among those it calls.
  RuntimeRecords(const RuntimeRecords&) = delete;
  RuntimeRecords& operator=(const RuntimeRecords&) = delete;

  // Has the sampler told of the interpreters that they find. Both must live as
  // long as each other.
  struct Wanted {
    bool cpython = true;
    bool v8 = true;
    bool hotspot = true;
  };
  void Follow(UnwindTables& tables, Wanted wanted);
  // Has code of that kind named by it; borrowed.
  void SetCodeNamer(RawFrameKind kind, CodeNamer& namer) {
    code_namers_[kind] = &namer;
  }
  // The process is gone.
  void Withdraw(const ksym::ProcessId& id);

  // Ignores records of other types, and those that are shorter than they claim
  // or lie.
  void Add(const profile_record& record, size_t bytes);

  // The sampler's stack with the frames that came for it, leaf first; empty if
  // none came.
  std::vector<RawFrame> MergeStack(uint64_t id, const RawStack& stack);
  // Leads walks of copied stacks through the code of JVMs.
  CopiedCode& copied_code() { return copied_code_; }
  // The same of a copied stack, by what is known of its native frames, and the
  // code that its walk found. Where a walk over all threads found it asleep,
  // its frames are read now.
  std::vector<RawFrame> MergeCopy(const profile_copy_record& copy,
                                  const NativeStack& native,
                                  std::span<const RuntimeCode> code,
                                  const RawStack& stack);
  // See V8Processes::ReadNames().
  void ReadNames(SteadyClock::duration time);
  bool HasWaitingNames() const { return v8_.HasWaitingNames(); }
  // More is to be read soon: of functions that were just seen, or of JVMs that
  // began just now.
  bool is_naming() const {
    return v8_.is_naming() || hotspot_.HasNew(SteadyClock::now());
  }
  // Between drains, often: tells the sampler of runtimes that have started.
  void Poll();
  // After each drain.
  void EndInterval();

  std::vector<std::string> TakeWarnings() { return hotspot_.TakeWarnings(); }
  // Adds the frame of that number, and those that it is inlined into.
  void AddFrame(RuntimeFrameId id, RuntimeFrameTable& frames);
  // How often frames were forgotten: those of before are there until the next
  // time.
  uint64_t forgettings() const { return names_.forgettings(); }
  RuntimeStatistics statistics() const;

 private:
  void Know(uint32_t bits);
  // The sampler holds them for known, and would not send them again.
  void ForgetCodes(const std::vector<uint64_t>& codes);
  void AddFrames(const profile_runtime_record& record, size_t bytes);
  std::optional<RuntimeRuns> Decode(const profile_runtime_record& record,
                                    size_t bytes);
  void AddCodeFrames(const ksym::ProcessId& process,
                     std::span<const RuntimeCode> code, RuntimeRuns& runs);
  std::vector<RawFrame> Merge(const RawStack& stack, RuntimeRuns& all);
  void CountRuns(const RuntimeRuns& runs, NativeEnd end);

  int codes_;
  uint32_t* known_;
  RuntimeNames names_;
  CpythonProcesses cpython_;
  V8Processes v8_;
  JavaNames java_ = JavaNames(names_);
  CopiedCode copied_code_;
  HotspotProcesses hotspot_;
  std::map<RawFrameKind, CodeNamer*> code_namers_;
  RuntimeStatistics::Runs runs_;
  // Until their stacks come.
  std::unordered_map<uint64_t, RuntimeRuns> of_stacks_;
  std::unordered_map<uint64_t, RuntimeRuns> of_copies_;
};

}  // namespace profd
