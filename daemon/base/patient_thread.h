// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "daemon/base/own_priority.h"

namespace profd {

// Does work that may never end, one piece after the other, in a thread of its
// own. The thread is left behind where a piece takes too long, and the next
// piece gets another one. Such a thread goes on until what it waits for is
// there or this process ends, as a fatal signal ends its wait. Not thread-safe.
class PatientThread {
 public:
  struct Options {
    std::chrono::milliseconds patience;  // for one piece
    // Threads that are left behind at once; while there are so many no piece is
    // begun.
    int max_left_behind;
    // What the thread has of its own priority; unset: none.
    std::optional<PriorityAllowance> allowance = {};
  };

  explicit PatientThread(const Options& options);
  ~PatientThread();
  PatientThread(const PatientThread&) = delete;
  PatientThread& operator=(const PatientThread&) = delete;

  // False: the piece was not begun, or is not done in time and may be at it for
  // ever. So all that it uses is its own. Some 20 us.
  bool Run(std::function<void()> work);

 private:
  class Worker;
  // How many they are. Each of them has a part of it, as it may outlive this.
  using LeftBehind = std::atomic<int>;

  const Options options_;
  std::shared_ptr<Worker> worker_;  // null: none was needed, or it was left
  std::shared_ptr<LeftBehind> left_behind_;
};

}  // namespace profd
