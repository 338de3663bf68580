// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "ksym/base/result.h"

namespace profd {

// Bounds the memory of answers: so many are made at once, and none is begun
// while those that wait to be taken have too many bytes. The others wait.
// Thread-safe.
class ResponseRoom {
 public:
  struct Bounds {
    size_t makers = 0;
    size_t bytes = 0;  // those being made come on top
  };
  explicit ResponseRoom(Bounds bounds)
      : state_(std::make_shared<State>(bounds)) {}

  // Answers' bytes count until nobody has it any more, also after the room's
  // end.
  using Held = std::shared_ptr<const void>;
  struct Made {
    std::string body;
    Held held;
  };
  // Makes an answer in this thread once there is room, or fails as `make` does,
  // which may throw as well. Nothing: there was none before the deadline, or
  // `is_gone` said, which is asked a few times per second, that the client is
  // there no more.
  std::optional<ksym::Result<Made>> Make(
      const std::function<ksym::Result<std::string>()>& make,
      const std::function<bool()>& is_gone,
      std::chrono::steady_clock::time_point deadline);

 private:
  struct State {
    explicit State(Bounds most) : bounds(most) {}

    const Bounds bounds;
    std::mutex mutex;  // of what follows
    std::condition_variable changed;
    size_t makers = 0;
    size_t bytes = 0;
  };

  bool Enter(const std::function<bool()>& is_gone,
             std::chrono::steady_clock::time_point deadline);
  void Leave(size_t made_bytes);

  std::shared_ptr<State> state_;
};

}  // namespace profd
