// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "daemon/profile/profile.h"

namespace profd {

// What clients can ask for: the profiles of the last intervals, and the parts
// of what is being sampled now. Giving never waits for a client. Thread-safe.
class ProfileHub {
 public:
  using Shared = std::shared_ptr<const Profile>;

  // The last of the finished profiles is kept, and those that ended at most so
  // long before it, while all take no more than about that much memory.
  struct Limits {
    uint64_t bytes = 0;
    uint64_t seconds = 0;
  };
  explicit ProfileHub(Limits limits) : limits_(limits) {}

  // Gets each part that is named from its making on. It must not outlive the
  // hub.
  class Subscription {
   public:
    explicit Subscription(ProfileHub& hub);
    ~Subscription();
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

    // The next part; nothing at the deadline, or when the hub is closed.
    std::optional<Shared> Next(std::chrono::steady_clock::time_point deadline);

   private:
    friend class ProfileHub;
    // For parts that are there; under the mutex.
    Shared TakeFront();

    ProfileHub& hub_;
    // Guarded by the hub's mutex.
    std::deque<Shared> parts_;
    size_t bytes_ = 0;  // of them
  };

  void AddPart(const Shared& part);
  void AddProfile(Shared profile);
  void SetLimits(Limits limits);
  // Those that have any of the time from..until (nanoseconds since 1970) in
  // them, oldest first.
  std::vector<Shared> Recent(uint64_t from_unix_ns, uint64_t until_unix_ns);
  // Wakes all subscribers for good.
  void Close();

 private:
  struct Kept {
    Shared profile;
    uint64_t bytes = 0;
    uint64_t end_unix_ns = 0;
  };

  void ForgetOld();

  std::mutex mutex_;  // of what follows
  Limits limits_;
  std::condition_variable changed_;
  std::list<Subscription*> subscriptions_;
  std::deque<Kept> recent_;
  uint64_t kept_bytes_ = 0;
  bool closed_ = false;
};

}  // namespace profd
