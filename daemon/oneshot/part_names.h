// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/naming/held_parts.h"
#include "daemon/naming/module_table.h"
#include "daemon/naming/naming.h"
#include "daemon/oneshot/options.h"
#include "daemon/oneshot/progress.h"
#include "daemon/profile/raw_profile.h"
#include "daemon/raw/raw_file.h"
#include "ksym/process/process_image.h"

namespace profd {

// From what a capture drains to its profile: the parts wait for the kernel's
// table and for the symbolizer, each in a thread of its own, and are put
// together in the order in which they came. Never waits while the capture runs.
// Not thread-safe.
class PartNames {
 public:
  using Clock = std::chrono::steady_clock;

  // The options must live longer, as must the progress.
  PartNames(const ProfileOptions& options, Progress& progress);

  // Reads the kernel's symbols that the user gave, if any.
  ksym::Status LoadGivenKernelNames();
  void Begin(const CaptureMetadata& metadata);
  // Begins to read the running kernel's table, which takes 50 ms: after
  // Begin().
  void BeginKernelNames();
  // A process was sampled, and may end at any moment.
  void Pin(const ksym::ProcessImage& image);
  // What was drained. Says new warnings.
  void Take(RawProfile&& part);
  // Takes what has its names by now.
  void Advance();

  // When the first part was drained that has no names yet; nothing: there is
  // none.
  std::optional<Clock::time_point> WaitsSince() const;

  // No more parts come: whether all have their names. `is_stopped` is asked
  // every 10 ms; at the deadline, or when it says so, what has no name by then
  // has the reason kNotInTime.
  bool Finish(Clock::time_point deadline,
              const std::function<bool()>& is_stopped);
  // The profile of what was taken; after Finish().
  Profile MakeProfile() { return naming_.Finish(); }
  // What was taken, with the kernel's symbols and the modules' build-ids, where
  // the options ask for a raw capture. After MakeProfile().
  RawCapture& CompleteRawCapture();

  Naming& naming() { return naming_; }
  bool keeps_raw() const;
  void Warn(const std::string& warning);

 private:
  // One that the symbolizer was asked for.
  struct Asked {
    std::shared_ptr<RawProfile> raw;
    Clock::time_point taken;
    std::shared_ptr<UserLookups> lookups;
    size_t bytes = 0;
  };
  bool HasKernelNames() const;
  void AwaitKernelNames();
  bool IsPutOff();
  void Ask();
  void AddFirst();
  void AddUnnamed(RawProfile& part);
  void Say(const std::vector<std::string>& warnings);
  bool AwaitSymbols(Clock::time_point deadline,
                    const std::function<bool()>& is_stopped);
  void ShowProgress();

  const ProfileOptions& options_;
  Progress& progress_;
  // Used by the symbolizer's thread, and ours once that has nothing to do.
  std::shared_ptr<ModuleTable> modules_ = std::make_shared<ModuleTable>();
  Naming naming_;
  std::stop_source give_up_kernel_names_;
  std::future<KernelNames> kernel_names_;  // while they are read
  HeldParts held_;  // until the kernel's table serves them
  std::deque<Asked> asked_;
  size_t asked_bytes_ = 0;
  RawCapture raw_capture_;
};

}  // namespace profd
