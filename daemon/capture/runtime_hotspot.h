// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/steady_clock.h"
#include "daemon/capture/copied_code.h"
#include "daemon/capture/foreign_memory.h"
#include "daemon/capture/java_names.h"
#include "ksym/process/process_image.h"
#include "ksym/runtime/hotspot/layout.h"
#include "ksym/runtime/hotspot/library.h"

namespace profd {

inline constexpr uint32_t kHotspotProcesses = 1024;

// The JVMs of sampled processes: tells the sampler where each has its code, and
// those that name it how it lies. All is read from the processes, by a thread
// that may be given up: what one process says of a library is not believed for
// another. Not thread-safe.
class HotspotProcesses {
 public:
  // The sampler's map hotspot_processes, or -1: it is not loaded. `names` and
  // `code` learn of the JVMs as well, and outlive this.
  HotspotProcesses(int map, JavaNames& names, CopiedCode& code)
      : map_(map), names_(names), code_(code) {}

  // The process maps the library, with that load bias.
  void Add(const ksym::ProcessId& process, uint64_t load_bias,
           const ksym::HotspotLibrary& library);
  void Forget(const ksym::ProcessId& process);
  // Tells the sampler of processes whose JVM has started since: they are tried
  // once a call, some 3 ms each the first time. True: it was told of some.
  bool Publish();

  // There are JVMs that started a moment ago, or are to: as long as the
  // sampler does not know them stacks are copied, and most of their methods are
  // new.
  bool HasNew(SteadyClock::time_point now) const;

  // That the sampler knows, now.
  uint64_t published() const { return published_; }
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
    SteadyClock::time_point since = {};  // first when it was added
  };
  struct Reading;

  void Refuse(const ksym::ProcessId& id, Process& process,
              const std::string& why);
  bool Start(const ksym::ProcessId& id, Process& process);

  int map_;
  JavaNames& names_;
  CopiedCode& code_;
  ForeignMemory memory_;
  std::map<ksym::ProcessId, Process> processes_;
  bool is_full_ = false;  // there were more processes than are known
  uint64_t published_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace profd
