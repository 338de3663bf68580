// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "bpf/runtime/runtime_abi.h"
#include "bpf/runtime/v8_abi.h"
#include "daemon/base/steady_clock.h"
#include "daemon/capture/java_names.h"
#include "daemon/capture/process_pages.h"
#include "daemon/capture/runtime_hotspot.h"
#include "daemon/capture/sleeping_frames.h"
#include "daemon/profile/raw_stack_table.h"
#include "daemon/profile/runtime_frame.h"
#include "daemon/runtime/code_namer.h"
#include "daemon/runtime/frame_merge.h"
#include "daemon/runtime/javascript_frames.h"
#include "daemon/runtime/javascript_names.h"
#include "daemon/runtime/runtime_names.h"
#include "daemon/unwind/unwind_tables.h"
#include "ksym/process/process_image.h"
#include "ksym/runtime/cpython/interpreter.h"

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
      : fds_(fds), known_(known), hotspot_(fds.hotspot, java_) {
    SetCodeNamer(kJavaScriptCode, javascript_);
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
  // The same of a copied stack, by what is known of its native frames.
  // Where a walk over all threads found it asleep, its frames are read now.
  std::vector<RawFrame> MergeCopy(const profile_copy_record& copy,
                                  const NativeStack& native,
                                  const RawStack& stack);
  // Reads the names of functions that were sampled from their processes, as far
  // as it gets in that time; a page that is not there takes
  // ForeignMemory::kPatience.
  void ReadNames(SteadyClock::duration time);
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
  void PublishFile(const TableFile& file);
  void Know(uint32_t bits);
  // The process maps the interpreter's file, with that load bias.
  void Publish(const ksym::ProcessId& process, uint64_t load_bias,
               const ksym::CpythonInterpreter& interpreter);
  void PublishV8(const ksym::ProcessId& process, const ksym::V8Layout& layout);
  void AddCode(const profile_code_record& record, size_t bytes);
  void AddV8Code(const profile_v8_record& record, size_t bytes);
  void AddFrames(const profile_runtime_record& record, size_t bytes);
  std::optional<RuntimeRuns> Decode(const profile_runtime_record& record,
                                    size_t bytes);
  void AddCodeFrames(const ksym::ProcessId& process,
                     std::span<const runtime_item> items, RuntimeRuns& runs);
  uint32_t NumberOf(const ksym::CpythonLayout& layout);
  const ksym::Memory& PagesOf(uint32_t pid);
  void FindV8Frames(const ksym::ProcessId& process, const NativeStack& native,
                    const RawStack& stack, RuntimeRuns& all);
  std::vector<RawFrame> Merge(const RawStack& stack, RuntimeRuns& all);
  void CountRuns(const RuntimeRuns& runs, NativeEnd end);

  RuntimeMapFds fds_;
  uint32_t* known_;
  std::vector<ksym::CpythonLayout> layouts_;  // by their number
  // Each process's interpreters, in the order of their numbers.
  std::map<ksym::ProcessId, MappedInterpreters> published_;
  std::map<ksym::ProcessId, const ksym::V8Layout*> of_v8_;
  RuntimeNames names_;
  SleepingFrames sleeping_{names_};
  JavaNames java_ = JavaNames(names_);
  HotspotProcesses hotspot_;
  std::map<RawFrameKind, CodeNamer*> code_namers_;
  JavaScriptNames javascript_ = JavaScriptNames(names_);
  ProcessPages pages_;
  uint32_t pages_of_ = 0;  // pid; 0: none
  SteadyClock::time_point pages_since_;
  RuntimeStatistics::Runs runs_;
  // Until their stacks come.
  std::unordered_map<uint64_t, RuntimeRuns> of_stacks_;
  std::unordered_map<uint64_t, RuntimeRuns> of_copies_;
};

}  // namespace profd
