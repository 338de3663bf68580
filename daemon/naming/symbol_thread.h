// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/naming/user_lookups.h"
#include "daemon/profile/raw_profile.h"
#include "ksym/process/process_image.h"
#include "ksym/symbolizer.h"

namespace profd {

// A symbolizer with a thread of its own, which begins with the first call that
// gives it something to do and takes no signals: reading a large program's
// symbols, or a file that hangs, keeps nobody from sampling, answering signals
// or ending. All functions are for one thread, the caller's.
class SymbolThread {
 public:
  using Clock = std::chrono::steady_clock;
  // Called in the thread for each image that it is given, if there is one.
  using Observer = std::function<void(const ksym::ProcessImage&)>;

  SymbolThread(ksym::SymbolizerOptions options, Observer observer);
  // Waits for all that was asked for. After GiveUp() it does not: then the
  // thread ends when it can, with a symbolizer and a queue that nobody else
  // uses any more.
  ~SymbolThread();
  SymbolThread(const SymbolThread&) = delete;
  SymbolThread& operator=(const SymbolThread&) = delete;

  // Opens the files of a process that was just sampled, before any lookups: it
  // may end at any moment. Never waits; more than kMaxImages that wait are
  // counted instead.
  static constexpr size_t kMaxImages = 4096;
  void Pin(const ksym::ProcessImage& image);
  uint64_t images_dropped() const { return images_dropped_; }
  // Has an interval's addresses named, in the order of the calls.
  std::shared_ptr<UserLookups> Ask(std::shared_ptr<const RawProfile> part);
  // Until then lookups take only the CPU time that nobody else wants, as long
  // as few intervals wait; from now on they run before what was measured.
  void Hurry();
  // Whether all that was asked for is done by then.
  bool WaitUntil(Clock::time_point deadline);
  // Nothing that is not done by now will be waited for.
  void GiveUp();
  bool is_given_up() const { return is_given_up_; }

  // Files that have user samples: how many were asked for, and named.
  struct Progress {
    uint64_t files = 0;
    uint64_t of_files = 0;
  };
  Progress progress() const;

  // The symbolizer itself, until the next call that gives the thread something
  // to do. Null while it has something to do, and once it is given up.
  ksym::Symbolizer* symbolizer();

 private:
  struct State;
  void Start();
  static void Run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  uint64_t images_dropped_ = 0;
  bool is_given_up_ = false;
};

}  // namespace profd
