// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/oneshot/top_page.h"
#include "daemon/profile/profile.h"
#include "daemon/top/profile_ring.h"
#include "daemon/top/top_rows.h"

namespace profd {

// The tables of a window, and the parts that they were made of.
struct TopWindow {
  TopTables tables;
  std::vector<ProfileRing::Part> parts;
  std::vector<std::string> warnings;  // of all parts
};

// Keeps the last parts of a capture, and makes tables and pages of them in a
// thread of its own: whoever answers keys never waits for it. Thread-safe.
class TopWorker {
 public:
  // Both are called in its thread.
  struct Sinks {
    std::function<void(std::shared_ptr<const TopWindow>)> window;
    // What became of a page: its name, or why there is none.
    std::function<void(ksym::Result<std::string>)> page;
  };
  TopWorker(std::chrono::seconds window, Sinks sinks);
  ~TopWorker();
  TopWorker(const TopWorker&) = delete;
  TopWorker& operator=(const TopWorker&) = delete;

  // The newest part. Tables are made of it now, or with a later one, which may
  // be as well where tables take much time: no more than kShare of a CPU's.
  enum class Show : uint8_t { kNow, kLater };
  static constexpr uint64_t kShare = 20;  // a twentieth
  void Add(ProfileRing::Part part, Show show);
  void SetWindow(std::chrono::seconds window);
  // Writes a page of those parts; false: one is being written.
  bool WritePage(std::vector<ProfileRing::Part> parts, TopPage page);
  // No more calls of sinks but that for a page that is being written; true if
  // that is over by then.
  bool Stop(std::chrono::steady_clock::time_point deadline);

 private:
  struct PageTask {
    std::vector<ProfileRing::Part> parts;
    TopPage page;
  };

  void Run();
  std::shared_ptr<const TopWindow> MakeWindow(
      std::vector<ProfileRing::Part> parts);

  const Sinks sinks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  ProfileRing ring_;
  std::chrono::seconds window_;
  bool is_due_ = false;  // tables are
  std::chrono::steady_clock::time_point rests_until_;
  std::optional<PageTask> page_;
  bool writes_page_ = false;
  bool stops_ = false;
  bool has_ended_ = false;
  std::vector<std::string> warnings_;  // the thread's
  std::thread thread_;                 // last: it uses the others
};

}  // namespace profd
