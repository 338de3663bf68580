// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "daemon/http/http_client.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// Connections whose request has not arrived yet. None has a thread, so that
// who sends slowly takes nothing but a place here; and of a client that takes
// most of the places, the one that it has had longest is closed for the next
// that comes. Not thread-safe.
class HttpArrivals {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMax = 64;  // by each way
  static constexpr size_t kMaxRequestBytes = 32 << 10;
  static constexpr std::chrono::seconds kRequestWithin{10};

  struct Arrived {
    ksym::UniqueFd fd;
    HttpClient client;
    std::string head;  // ends with an empty line
  };

  void Add(ksym::UniqueFd fd, HttpClient client, Clock::time_point now);
  // Adds an entry for each, in an order that stays until Take().
  void AppendTo(std::vector<pollfd>& entries) const;
  // What has arrived, `entries` being those that AppendTo() added after
  // poll(2). Closes those that are over a bound or too late.
  std::vector<Arrived> Take(const pollfd* entries, Clock::time_point now);
  // When the first will be too late; max() if there is none.
  Clock::time_point NextDeadline() const;
  size_t size() const { return arriving_.size(); }

 private:
  struct Arriving {
    Arrived request;
    Clock::time_point deadline;
  };
  enum class State : uint8_t { kGoesOn, kArrived, kOver };

  void MakeRoom(HttpWay way);
  static State Read(Arrived& request);

  std::list<Arriving> arriving_;  // in the order of their coming
};

}  // namespace profd
