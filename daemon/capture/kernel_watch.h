#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/capture/cpu_list.h"
#include "daemon/capture/module_uevents.h"
#include "daemon/capture/side_band.h"
#include "daemon/profile/raw_profile.h"
#include "ksym/base/result.h"

namespace profd {

// Collects what changes in the kernel's symbol table while sampling runs, and
// hands each change to the interval that it happened in.
class KernelWatch {
 public:
  enum class Modules : uint8_t { kTold, kByUevents };
  // kTold: somebody else calls ModuleChanged().
  static ksym::Result<KernelWatch> Start(const CpuList& online,
                                         Modules modules);

  ksym::Status Follow(const CpuList& online) {
    return side_band_.Follow(online);
  }
  void ModuleChanged() { stale_ = true; }

  // Takes new reports in. True when there is something that should end the
  // running interval.
  bool Poll();
  // Moves the changes up to that time (CLOCK_MONOTONIC) into the profile.
  void EndInterval(uint64_t time_ns, RawProfile& profile);

 private:
  explicit KernelWatch(SideBand side_band) : side_band_(std::move(side_band)) {}

  SideBand side_band_;
  std::optional<ModuleUevents> uevents_;
  std::vector<SideBandEvent> pending_;
  bool stale_ = false;
};

}  // namespace profd
