// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace profd {

// Hands values from one thread to another. Never makes the giver wait: what is
// over the bound is refused, and the giver counts it. Thread-safe.
template <typename T>
class BlockingQueue {
 public:
  explicit BlockingQueue(size_t bound) : bound_(bound) {}

  // False, and `value` is as it was: full or closed.
  bool Push(T& value) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || values_.size() >= bound_) return false;
      values_.push_back(std::move(value));
    }
    filled_.notify_one();
    return true;
  }
  // The next value; nothing when the queue is closed and empty.
  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return closed_ || !values_.empty(); });
    if (values_.empty()) return std::nullopt;
    std::optional<T> value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  // How many wait.
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }
  bool is_closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  // No more values come; those that are there can still be taken.
  void Close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    filled_.notify_all();
  }

 private:
  const size_t bound_;
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<T> values_;
  bool closed_ = false;
};

}  // namespace profd
