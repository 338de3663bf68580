// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/top_worker.h"

#include <algorithm>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/base/own_priority.h"
#include "daemon/base/signals_blocked.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;

// Tables of a very large machine take longer, and then come later.
constexpr PriorityAllowance kWorkerAllowance = {
    .at_once = std::chrono::milliseconds(200),
    .per_second = std::chrono::milliseconds(50)};
// Different ones; they do not come to more in any capture.
constexpr size_t kMaxWarnings = 100;

void AddNew(const std::vector<std::string>& more,
            std::vector<std::string>& warnings) {
  for (const std::string& warning : more) {
    if (warnings.size() >= kMaxWarnings) return;
    if (std::ranges::find(warnings, warning) == warnings.end()) {
      warnings.push_back(warning);
    }
  }
}

}  // namespace

TopWorker::TopWorker(std::chrono::seconds window, Sinks sinks)
    : sinks_(std::move(sinks)), window_(window) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Run(); });
}

TopWorker::~TopWorker() {
  Stop(Clock::time_point::min());
  thread_.join();
}

void TopWorker::Add(ProfileRing::Part part, Show show) {
  const std::lock_guard lock(mutex_);
  ring_.Add(std::move(part));
  if (show == Show::kLater || Clock::now() < rests_until_) return;
  is_due_ = true;
  changed_.notify_all();
}

void TopWorker::SetWindow(std::chrono::seconds window) {
  const std::lock_guard lock(mutex_);
  if (window_ == window) return;
  window_ = window;
  is_due_ = true;
  changed_.notify_all();
}

bool TopWorker::WritePage(std::vector<ProfileRing::Part> parts, TopPage page) {
  const std::lock_guard lock(mutex_);
  if (page_ || writes_page_) return false;
  page_ = PageTask{.parts = std::move(parts), .page = page};
  changed_.notify_all();
  return true;
}

bool TopWorker::Stop(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  stops_ = true;
  changed_.notify_all();
  return changed_.wait_until(lock, deadline, [this] { return has_ended_; });
}

void TopWorker::Run() {
  PriorityShare share(kWorkerAllowance);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_due_ || page_ || stops_; });
    // First, also when it is to stop: somebody was told that it is being
    // written.
    if (page_) {
      const PageTask task = std::move(*page_);
      page_.reset();
      writes_page_ = true;
      lock.unlock();
      auto written = WriteTopPage(task.parts, task.page);
      // Told before another one may begin, so that each page has its message.
      sinks_.page(std::move(written));
      lock.lock();
      writes_page_ = false;
    } else if (stops_) {
      break;
    } else {
      is_due_ = false;
      auto parts = ring_.Last(
          static_cast<uint64_t>(std::chrono::nanoseconds(window_).count()));
      lock.unlock();
      share.Renew();
      const auto begin = Clock::now();
      const uint64_t cpu_ns = NowNs(CLOCK_THREAD_CPUTIME_ID);
      sinks_.window(MakeWindow(std::move(parts)));
      const uint64_t took_ns = NowNs(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
      lock.lock();
      rests_until_ = begin + std::chrono::nanoseconds(took_ns * kShare);
    }
  }
  has_ended_ = true;
  changed_.notify_all();
}

std::shared_ptr<const TopWindow> TopWorker::MakeWindow(
    std::vector<ProfileRing::Part> parts) {
  const Profile profile = ProfileOfWindow(parts);
  AddNew(profile.metadata.warnings, warnings_);
  auto window = std::make_shared<TopWindow>();
  window->tables = MakeTopTables(profile);
  window->parts = std::move(parts);
  window->warnings = warnings_;
  return window;
}

}  // namespace profd
