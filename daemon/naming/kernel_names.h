// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/naming/read_ahead.h"
#include "daemon/naming/resolve.h"
#include "daemon/raw/raw_file.h"
#include "ksym/base/file.h"
#include "ksym/base/result.h"
#include "ksym/kernel/kernel_timeline.h"
#include "ksym/kernel/module_list.h"

namespace profd {

// How the running kernel's table is read, which takes seconds where the kernel
// is slow.
struct KernelReading {
  // Reads the listing from its descriptor, which it borrows.
  std::function<std::unique_ptr<ksym::ByteStream>(int fd)> make_stream =
      ReadAhead::Start;
  // Gives the first reading up, so that kernel frames have no names.
  std::stop_token give_up_first;
  // Gives a later one up, and none is begun any more: the table that is there
  // serves on.
  std::stop_token give_up_later;
};

// The kernel's symbols as they change during a capture. Without symbols, or
// where the kernel hides them, a profile is still of use: that is a warning
// and no failure.
class KernelNames {
 public:
  // The time of an interval that was drained just now.
  static constexpr auto kNow = std::chrono::steady_clock::time_point::max();

  // None, because no kernel frame will be asked for.
  KernelNames() = default;
  // The running kernel's, from /proc/kallsyms; about as long as
  // the kernel takes to write it, 30 to 50 ms. Starts a thread and ends it.
  static KernelNames OfRunningKernel(KernelReading reading = {});
  // Those of a file that the user gave instead.
  static ksym::Result<KernelNames> OfFile(const std::string& path);
  // Those that a raw capture carries, with all its changes applied.
  static KernelNames OfCapture(const RawCapture& capture);

  // Null: none.
  const ksym::KernelTimeline* timeline() const {
    return timeline_ ? &*timeline_ : nullptr;
  }
  KernelSymbolsState state() const { return state_; }
  // A line that the user should know; empty: there is none.
  const std::string& warning() const { return warning_; }

  // Until when naming the interval is better put off, less than a second: a
  // module came or went, and the table that tells its symbols may not be read
  // again before. Absent: now is as good. To be asked again when a later
  // interval is there, as it looks which modules there are; /proc/modules is
  // read. `taken`: when the interval was drained, at the latest: a table that
  // was read after that is as new as it needs.
  std::optional<std::chrono::steady_clock::time_point> PutOff(
      const RawProfile& interval,
      std::chrono::steady_clock::time_point taken = kNow);
  // The next interval is the last one: the table may be read for it at once.
  void ReadWithoutPause() { last_read_ = Clock::time_point(); }
  // Takes an interval's changes in, before its samples are named. Where only
  // the whole table tells, it is read again, but at most once a second: a
  // storm of module loads shall not make reading all that is done.
  void BeginInterval(const RawProfile& interval,
                     std::chrono::steady_clock::time_point taken = kNow);
  void EndInterval(std::chrono::steady_clock::time_point taken = kNow);

  // The table of the last reading, for a raw capture; empty: none.
  std::vector<std::byte> Bytes() const;

  KernelTableStatistics statistics() const;

 private:
  using Clock = std::chrono::steady_clock;
  void ReadAgainIfDue();

  std::optional<ksym::KernelTimeline> timeline_;
  KernelSymbolsState state_ = KernelSymbolsState::kNotWanted;
  std::string warning_;
  KernelReading reading_;
  bool follows_running_kernel_ = false;
  bool stale_ = false;
  Clock::time_point reading_begun_;  // the last one that gave a table
  Clock::time_point last_read_;      // the end of the last one
  ksym::ModuleList modules_;         // of that time
  // The ranges of modules that were there while naming was put off.
  std::vector<ksym::KernelRange> newcomers_;
  uint64_t snapshots_ = 0;
  uint64_t changes_ = 0;
  Clock::duration reading_time_{};
};

// Makes the resolver name kernel frames with `kernel`, which it borrows.
void UseKernelNames(const KernelNames& kernel, Resolver& resolver);

}  // namespace profd
