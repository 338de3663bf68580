// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/capture/foreign_memory.h"
#include "daemon/profile/runtime_frame.h"
#include "daemon/runtime/code_namer.h"
#include "daemon/runtime/runtime_names.h"
#include "ksym/process/process_image.h"
#include "ksym/runtime/hotspot/layout.h"
#include "ksym/runtime/hotspot/library.h"

namespace profd {

inline constexpr uint32_t kHotspotProcesses = 1024;

// The JVMs of sampled processes: tells the sampler where each has its code, and
// names the methods of that. All is read from the processes, while they live.
// Not thread-safe.
class HotspotProcesses final : public CodeNamer {
 public:
  // The sampler's map hotspot_processes, or -1: it is not loaded. `names` makes
  // the frames; it lives longer.
  HotspotProcesses(int map, RuntimeNames& names) : map_(map), names_(names) {}

  // The process maps the library, with that load bias. The file tells its
  // layout from others'.
  void Add(const ksym::ProcessId& process, uint64_t load_bias,
           const ksym::HotspotLibrary& library);
  void Forget(const ksym::ProcessId& process);
  // Tells the sampler of processes whose JVM has started since: they are tried
  // once a call, some 100 us each, as long as they are few. True: it was told
  // of some.
  bool Publish();

  std::vector<RawFrame> FramesOf(const ksym::ProcessId& process,
                                 const RuntimeCode& code) override;

  struct Statistics {
    uint64_t processes = 0;     // that the sampler knows, now
    uint64_t methods = 0;       // that were named
    uint64_t methods_gone = 0;  // each time that one was not there any more
    uint64_t methods_late = 0;  // that there was no time for yet
  };
  const Statistics& statistics() const { return statistics_; }
  // Begins the next interval: so many methods may be read again.
  void EndInterval();
  // Why JVMs were refused, since the last call.
  std::vector<std::string> TakeWarnings() {
    return std::exchange(warnings_, {});
  }

 private:
  struct Process {
    uint64_t load_bias = 0;
    ksym::HotspotLibrary library;
    std::optional<ksym::HotspotLayout> layout;
    bool is_published = false;
    bool is_refused = false;
    uint32_t tries = 0;
    // Names by kind and code.
    std::map<std::pair<RawFrameKind, uint64_t>, std::string> methods;
  };

  void Refuse(const ksym::ProcessId& id, Process& process,
              const std::string& why);
  bool Start(const ksym::ProcessId& id, Process& process);
  std::optional<std::string> NameOf(const ksym::ProcessId& id,
                                    const ksym::HotspotLayout& layout,
                                    const RuntimeCode& code);

  int map_;
  RuntimeNames& names_;
  ForeignMemory memory_;
  std::map<ksym::ProcessId, Process> processes_;
  uint32_t read_ = 0;     // methods in this interval
  bool is_full_ = false;  // there were more processes than are known
  size_t kept_ = 0;       // methods of all processes
  Statistics statistics_;
  std::vector<std::string> warnings_;
};

}  // namespace profd
