// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/service/config.h"

namespace profd {

// Decides when the service has to do with less, from what it uses itself. Not
// thread-safe.
class Guardrail {
 public:
  using Clock = std::chrono::steady_clock;
  // Over what time use is measured; one that is over a limit twice in a row
  // costs the samples of waits, or where there are none a level; half an hour
  // under three quarters of both gives the last of these back.
  static constexpr std::chrono::seconds kWindow{5};
  static constexpr unsigned kPatience = 2;
  static constexpr unsigned kRest = 360;
  static constexpr unsigned kMaxLevel = 4;

  // What this process used, since its start and now.
  struct Use {
    // Up to now; where it went back nothing was used.
    uint64_t cpu_ns = 0;
    uint64_t resident_bytes = 0;
  };
  // How much is left; first nothing is taken away.
  struct State {
    unsigned level = 0;
    bool has_waits = true;  // false: threads that wait are not sampled

    friend bool operator==(const State&, const State&) = default;
  };
  struct Change {
    State state;
    std::string why;
  };

  Guardrail(Clock::time_point now, const Use& use)
      : window_begin_(now), at_begin_(use) {}

  bool IsDue(Clock::time_point now) const {
    return now - window_begin_ >= kWindow;
  }
  // Ends a window. What has changed, if anything.
  std::optional<Change> Check(Clock::time_point now, const Use& use,
                              const ServiceConfig& wanted);
  const State& state() const { return state_; }

 private:
  // Whether there was something.
  bool TakeAway(const ServiceConfig& wanted);
  bool GiveBack(const ServiceConfig& wanted);

  Clock::time_point window_begin_;
  Use at_begin_;
  State state_;
  unsigned over_ = 0;  // windows in a row
  unsigned under_ = 0;
};

// The configuration as a state leaves it: levels 1 and 2 halve the rate, 3
// symbol tables, stacks and their tables, 4 walks by tables and threads as
// well.
ServiceConfig Reduce(ServiceConfig config, const Guardrail::State& state);

}  // namespace profd
