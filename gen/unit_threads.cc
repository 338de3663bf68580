// SPDX-License-Identifier: Apache-2.0
#include "gen/unit_threads.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace gen {
namespace {

// Units in flight: slot i % slots holds unit i from when it is begun until it
// is added.
class UnitQueue {
 public:
  UnitQueue(const ksym::UnitWork& work, size_t slots)
      : work_(work), slots_(slots) {}

  // On each worker: reads units until there are none, or one cannot be read.
  void Work() {
    try {
      while (ReadNext()) {
      }
    } catch (...) {
      // It is for the caller's thread: one that leaves a thread ends the
      // program without a word.
      Stop(std::current_exception());
    }
  }

  // Lets the workers end without what is not begun.
  void Stop(std::exception_ptr failure = nullptr) {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    if (failure_ == nullptr) failure_ = std::move(failure);
    changed_.notify_all();
  }

  // On the caller's thread: adds the units as they become ready.
  void AddAll(const std::function<void(size_t, size_t)>& progress) {
    for (size_t i = 0; i < work_.unit_count; ++i) {
      Slot& slot = slots_[i % slots_.size()];
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return slot.is_read || failure_ != nullptr; });
      if (failure_ != nullptr) std::rethrow_exception(failure_);
      lock.unlock();
      // Without the lock: the workers read on meanwhile. Nobody else touches
      // the slot before `added_` says that it is free.
      work_.add(slot.unit);
      lock.lock();
      slot.is_read = false;
      ++added_;
      changed_.notify_all();
      lock.unlock();
      progress(i + 1, work_.unit_count);
    }
  }

 private:
  struct Slot {
    ksym::UnitFunctions unit;
    bool is_read = false;
  };

  // The next unit, as soon as its slot is free. False: there is none.
  bool ReadNext() {
    std::unique_lock lock(mutex_);
    const size_t index = next_read_++;
    if (index >= work_.unit_count) return false;
    // The unit that is to be added next never waits here, so AddAll() goes on.
    changed_.wait(
        lock, [&] { return index < added_ + slots_.size() || is_stopped_; });
    if (is_stopped_) return false;
    lock.unlock();
    Slot& slot = slots_[index % slots_.size()];
    work_.read(index, slot.unit);
    lock.lock();
    slot.is_read = true;
    changed_.notify_all();
    return true;
  }

  const ksym::UnitWork& work_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t next_read_ = 0;
  size_t added_ = 0;
  bool is_stopped_ = false;
  std::exception_ptr failure_;
};

// Ends the workers' waits when it goes, so that they can be joined.
class Stopping {
 public:
  explicit Stopping(UnitQueue& queue) : queue_(queue) {}
  ~Stopping() { queue_.Stop(); }
  Stopping(const Stopping&) = delete;
  Stopping& operator=(const Stopping&) = delete;

 private:
  UnitQueue& queue_;
};

void RunAlone(const ksym::UnitWork& work,
              const std::function<void(size_t, size_t)>& progress) {
  ksym::UnitFunctions unit;
  for (size_t i = 0; i < work.unit_count; ++i) {
    work.read(i, unit);
    work.add(unit);
    progress(i + 1, work.unit_count);
  }
}

}  // namespace

ksym::UnitRunner RunUnitsOnThreads(
    size_t threads, std::function<void(size_t done, size_t all)> progress) {
  return [threads, progress = std::move(progress)](const ksym::UnitWork& work) {
    const size_t count = std::min(threads, work.unit_count);
    if (count < 2) {
      RunAlone(work, progress);
      return;
    }
    UnitQueue queue(work, 2 * count);
    std::vector<std::jthread> workers;
    workers.reserve(count);
    // Goes before the workers: also where a thread cannot be had, or where
    // there is no memory to add a unit.
    const Stopping stopping(queue);
    for (size_t i = 0; i < count; ++i) {
      workers.emplace_back([&queue] { queue.Work(); });
    }
    queue.AddAll(progress);
  };
}

}  // namespace gen
