// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "daemon/capture/capture.h"
#include "daemon/oneshot/options.h"
#include "daemon/oneshot/part_names.h"
#include "daemon/oneshot/progress.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd {

// A capture without end, in a thread of its own, that gives a profile of each
// part of it: what has its names by then.
class TopCapture {
 public:
  using Clock = std::chrono::steady_clock;
  // Called in the capture's thread, and must not take long.
  struct Sinks {
    std::function<void(std::shared_ptr<const Profile>)> part;
    // There are no more parts.
    std::function<void(ksym::Error)> failure;
  };

  // Begins to sample as the options say, which must live longer, in parts of
  // that length. Where threads that wait cannot be sampled, those that run are.
  // Blocks for some tenths of a second.
  static ksym::Result<std::unique_ptr<TopCapture>> Start(
      ProfileOptions& options, std::chrono::milliseconds part, Sinks sinks);
  ~TopCapture();
  TopCapture(const TopCapture&) = delete;
  TopCapture& operator=(const TopCapture&) = delete;

  // As known at the start.
  const CaptureMetadata& metadata() const { return metadata_; }
  // Why threads that wait are not sampled; empty: they are.
  const std::string& no_waits() const { return no_waits_; }
  // How long ago threads that sleep on were last looked at. Where there are
  // thousands that is put off, to bound the cost; the next look counts it all.
  // From any thread.
  Clock::duration SinceWalk() const;
  // Ends the thread: true if it has ended by then. Else, or where something
  // that cannot be interrupted is left, only _Exit() ends the program in time.
  bool Stop(Clock::time_point deadline);

 private:
  TopCapture(ProfileOptions& options, std::chrono::milliseconds part,
             Sinks sinks);
  ksym::Status Begin();
  ksym::Status TryBegin();
  void Run();
  ksym::Status Sample();
  void WalkSleepers();
  void GivePart();
  void MakeNames();
  void RenewNames();
  void BeginPart();

  ProfileOptions& options_;
  const std::chrono::milliseconds part_;
  const Sinks sinks_;
  Progress progress_{Progress::Mode::kQuiet};
  std::unique_ptr<PartNames> names_;
  unsigned names_given_up_ = 0;
  std::unique_ptr<Capture> capture_;
  CaptureMetadata metadata_;
  std::string no_waits_;
  Clock::time_point begin_;
  uint64_t walks_ = 0;                     // of sleepers
  std::atomic<int64_t> last_walk_ns_ = 0;  // of the steady clock
  std::atomic<bool> stops_ = false;
  std::atomic<bool> has_ended_ = false;
  std::thread thread_;
};

}  // namespace profd
