// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "bpf/runtime/v8_abi.h"
#include "daemon/base/steady_clock.h"
#include "daemon/capture/process_pages.h"
#include "daemon/profile/raw_stack_table.h"
#include "daemon/profile/runtime_frame.h"
#include "daemon/runtime/frame_merge.h"
#include "daemon/runtime/javascript_names.h"
#include "daemon/runtime/runtime_names.h"
#include "ksym/process/process_image.h"
#include "ksym/runtime/v8/layout.h"

namespace profd {

// The V8 engines of sampled processes: tells the sampler where they are, and
// reads the names of their functions. Not thread-safe.
class V8Processes {
 public:
  // The sampler's map v8_processes, or -1: it is not loaded. `names` numbers
  // the frames; it lives longer.
  V8Processes(int map, RuntimeNames& names) : map_(map), javascript_(names) {}

  // The process maps an engine of that layout. True: the sampler was told, and
  // did not know.
  bool Add(const ksym::ProcessId& process, const ksym::V8Layout& layout);
  void Forget(const ksym::ProcessId& process);

  void AddCode(const profile_v8_record& record, size_t bytes);
  // Reads the names of functions that were sampled from their processes, as far
  // as it gets in that time; a page that is not there takes
  // ForeignMemory::kPatience.
  void ReadNames(SteadyClock::duration time);
  // Adds the frames of a copied stack, by what is known of its native ones.
  void FindFrames(const ksym::ProcessId& process, const NativeStack& native,
                  const RawStack& stack, RuntimeRuns& all);
  // Code that the sampler takes for known, and that is not.
  std::vector<uint64_t> TakeDropped() { return javascript_.TakeDropped(); }
  // After each drain.
  void EndInterval() { javascript_.EndInterval(); }

  CodeNamer& namer() { return javascript_; }
  std::optional<RuntimeFrame> Get(RuntimeFrameId id) {
    return javascript_.Get(id);
  }
  size_t size() const { return layouts_.size(); }
  const JavaScriptNames::Statistics& statistics() const {
    return javascript_.statistics();
  }

 private:
  const ksym::Memory& PagesOf(uint32_t pid);

  int map_;
  std::map<ksym::ProcessId, const ksym::V8Layout*> layouts_;
  JavaScriptNames javascript_;
  ProcessPages pages_;
  uint32_t pages_of_ = 0;  // pid; 0: none
  SteadyClock::time_point pages_since_;
};

}  // namespace profd
