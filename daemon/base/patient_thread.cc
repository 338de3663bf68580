// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/patient_thread.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "daemon/base/signals_blocked.h"

namespace profd {

// Shared by the thread that works and the one that asks. The former keeps it
// when it is left behind.
class PatientThread::Worker {
 public:
  // Null: there can be no more threads.
  static std::shared_ptr<Worker> Start(const Options& options) {
    auto worker = std::make_shared<Worker>(options);
    const SignalsBlocked blocked;
    try {
      std::thread([worker] { worker->Run(); }).detach();
    } catch (const std::system_error&) {
      return nullptr;
    }
    return worker;
  }

  explicit Worker(const Options& options) : options_(options) {}

  // False: it is not done in time, and this is of no use any more; it counts in
  // `left_behind` for as long as it is at it.
  bool Do(std::function<void()> work,
          const std::shared_ptr<LeftBehind>& left_behind) {
    std::unique_lock lock(mutex_);
    work_ = std::move(work);
    changed_.notify_all();
    if (changed_.wait_for(lock, options_.patience, [this] { return !work_; })) {
      return true;
    }
    ++*left_behind;
    left_behind_ = left_behind;
    stops_ = true;
    return false;
  }

  void Stop() {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
    changed_.notify_all();
  }

 private:
  void Run() {
    std::optional<PriorityShare> share;
    if (options_.allowance) share.emplace(*options_.allowance);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stops_ || work_; });
      if (!work_) return;
      // Nobody else touches the work meanwhile: the thread that asks waits
      // until there is none, or stops this.
      lock.unlock();
      if (share) share->Renew();
      work_();
      lock.lock();
      work_ = nullptr;
      changed_.notify_all();
      if (left_behind_) --*left_behind_;
    }
  }

  const Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, but for the call.
  bool stops_ = false;
  std::function<void()> work_;
  std::shared_ptr<LeftBehind> left_behind_;  // null: it is in time
};

PatientThread::PatientThread(const Options& options)
    : options_(options), left_behind_(std::make_shared<LeftBehind>()) {}

PatientThread::~PatientThread() {
  if (worker_) worker_->Stop();
}

bool PatientThread::Run(std::function<void()> work) {
  if (*left_behind_ >= options_.max_left_behind) return false;
  if (!worker_) worker_ = Worker::Start(options_);
  if (!worker_) return false;
  if (worker_->Do(std::move(work), left_behind_)) return true;
  worker_ = nullptr;
  return false;
}

}  // namespace profd
