// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/profile/raw_profile.h"
#include "daemon/track/module_uevents.h"
#include "ksym/kernel/kernel_symbol_change.h"

namespace profd {

// Collects what changes in the kernel's symbol table while sampling runs, and
// hands each change to the interval that it happened in.
class KernelWatch {
 public:
  enum class Modules : uint8_t { kTold, kByUevents };
  // kTold: somebody else calls TableChanged().
  explicit KernelWatch(Modules modules);

  void Add(uint64_t time_ns, ksym::KernelSymbolChange change);
  // In a way that is not known: a module, or reports that were lost.
  void TableChanged() { stale_ = true; }

  // True when there is something that should end the running interval.
  bool Poll();
  // Moves the changes up to that time (CLOCK_MONOTONIC) into the profile.
  void EndInterval(uint64_t time_ns, RawProfile& profile);

 private:
  struct Pending {
    uint64_t time_ns = 0;
    ksym::KernelSymbolChange change;
  };

  std::optional<ModuleUevents> uevents_;
  std::vector<Pending> pending_;  // by time
  bool stale_ = false;
};

}  // namespace profd
