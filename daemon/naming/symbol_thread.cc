// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/symbol_thread.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "daemon/base/own_priority.h"
#include "daemon/base/signals_blocked.h"

namespace profd {
namespace {

using std::chrono::milliseconds;

// How long it may run before what was measured: files of processes that may end
// are opened at once, and the first interval's names come soon.
constexpr PriorityAllowance kAllowance = {.at_once = milliseconds(600),
                                          .per_second = milliseconds(100)};
// With more intervals that wait, lookups cannot wait for an idle CPU.
constexpr size_t kMaxPatient = 10;

}  // namespace

// The state that the thread and its owner share. The thread keeps it alive:
// after GiveUp() it may still be in a file that does not answer.
struct SymbolThread::State {
  State(ksym::SymbolizerOptions options, Observer its_observer)
      : observer(std::move(its_observer)), symbolizer(std::move(options)) {}

  struct Task {
    enum class Kind : uint8_t { kPin, kName, kEnd };
    Kind kind = Kind::kEnd;
    ksym::ProcessImage image;
    std::shared_ptr<UserLookups> lookups;
  };

  // Locked. Whether there is something to do; who closed may still have.
  bool HasTask() const {
    return is_closed || !images.empty() || !intervals.empty();
  }
  Task Next(PriorityShare& share);
  void Name(UserLookups& lookups, PriorityShare& share);
  void Pin(const ksym::ProcessImage& image);
  void PinAll(PriorityShare& share);

  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex.
  std::deque<ksym::ProcessImage> images;
  std::deque<std::shared_ptr<UserLookups>> intervals;
  std::set<MappedFileKey> files_asked;
  bool is_busy = false;
  bool is_closed = false;

  std::atomic<bool> has_images = false;
  std::atomic<bool> hurries = false;
  std::atomic<bool> is_behind = false;
  std::atomic<bool> is_given_up = false;
  std::atomic<uint64_t> files_named = 0;

  // The thread's, and the owner's while it has nothing to do.
  Observer observer;
  ksym::Symbolizer symbolizer;
  std::set<MappedFileKey> named;

  std::thread thread;
};

SymbolThread::State::Task SymbolThread::State::Next(PriorityShare& share) {
  std::unique_lock lock(mutex);
  is_busy = false;
  if (!HasTask()) {
    changed.notify_all();
    // Raised while it waits, as an image has to be opened at once.
    lock.unlock();
    share.Renew();
    lock.lock();
    changed.wait(lock, [this] { return HasTask(); });
  }
  is_busy = true;
  // Images come first: a process may end at any moment, an interval cannot.
  Task task;
  if (!images.empty()) {
    task.kind = Task::Kind::kPin;
    task.image = std::move(images.front());
    images.pop_front();
    has_images = !images.empty();
  } else if (!intervals.empty()) {
    task.kind = Task::Kind::kName;
    task.lookups = std::move(intervals.front());
    intervals.pop_front();
    is_behind = intervals.size() >= kMaxPatient;
  } else {
    // Closed, and all that was asked for is done.
    is_busy = false;
    changed.notify_all();
  }
  return task;
}

void SymbolThread::State::Pin(const ksym::ProcessImage& image) {
  symbolizer.Pin(image);
  if (observer) observer(image);
}

// Images that came while an interval is named: their processes may end before
// its last address has a name.
void SymbolThread::State::PinAll(PriorityShare& share) {
  share.Renew();
  while (has_images) {
    std::unique_lock lock(mutex);
    const ksym::ProcessImage image = std::move(images.front());
    images.pop_front();
    has_images = !images.empty();
    lock.unlock();
    Pin(image);
  }
}

void SymbolThread::State::Name(UserLookups& lookups, PriorityShare& share) {
  if (observer) {
    for (const auto& [id, image] : lookups.part().images) observer(image);
  }
  // Between two addresses it looks for all that cannot wait: an address may
  // take a whole file's symbols.
  for (;;) {
    if (is_given_up) return;
    if (has_images) PinAll(share);
    if (hurries || is_behind) {
      share.Renew();
    } else {
      share.Rest();
    }
    const MappedFileKey file = lookups.NextFile();
    if (!lookups.NameNext(symbolizer)) return;
    if (file != MappedFileKey() && named.insert(file).second) ++files_named;
  }
}

SymbolThread::SymbolThread(ksym::SymbolizerOptions options, Observer observer)
    : state_(std::make_shared<State>(std::move(options), std::move(observer))) {
}

void SymbolThread::Start() {
  if (state_->thread.joinable()) return;
  // The thread inherits the mask: signals are the main thread's.
  const SignalsBlocked blocked;
  state_->thread = std::thread([state = state_] { Run(state); });
}

void SymbolThread::Run(const std::shared_ptr<State>& state) {
  PriorityShare share(kAllowance);
  for (;;) {
    const State::Task task = state->Next(share);
    if (state->is_given_up) return;
    switch (task.kind) {
      case State::Task::Kind::kPin:
        share.Renew();
        state->Pin(task.image);
        break;
      case State::Task::Kind::kName:
        state->Name(*task.lookups, share);
        break;
      case State::Task::Kind::kEnd:
        return;
    }
  }
}

SymbolThread::~SymbolThread() {
  if (is_given_up_ || !state_->thread.joinable()) return;
  {
    const std::scoped_lock lock(state_->mutex);
    state_->is_closed = true;
  }
  state_->hurries = true;
  state_->changed.notify_all();
  state_->thread.join();
}

void SymbolThread::Pin(const ksym::ProcessImage& image) {
  if (is_given_up_) return;
  Start();
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->images.size() >= kMaxImages) {
      ++images_dropped_;
      return;
    }
    state_->images.push_back(image);
    state_->has_images = true;
  }
  state_->changed.notify_all();
}

std::shared_ptr<UserLookups> SymbolThread::Ask(
    std::shared_ptr<const RawProfile> part) {
  auto lookups = std::make_shared<UserLookups>(std::move(part));
  if (is_given_up_) return lookups;
  Start();
  const auto files = lookups->Files();
  {
    const std::scoped_lock lock(state_->mutex);
    state_->files_asked.insert(files.begin(), files.end());
    state_->intervals.push_back(lookups);
  }
  state_->changed.notify_all();
  return lookups;
}

void SymbolThread::Hurry() { state_->hurries = true; }

bool SymbolThread::WaitUntil(Clock::time_point deadline) {
  if (is_given_up_) return false;
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_until(lock, deadline, [this] {
    return !state_->is_busy && state_->images.empty() &&
           state_->intervals.empty();
  });
}

void SymbolThread::GiveUp() {
  if (std::exchange(is_given_up_, true)) return;
  {
    const std::scoped_lock lock(state_->mutex);
    state_->is_given_up = true;
    state_->is_closed = true;
  }
  state_->changed.notify_all();
  // Not joined: it may never come back from a file, and has its state.
  if (state_->thread.joinable()) state_->thread.detach();
}

SymbolThread::Progress SymbolThread::progress() const {
  const std::scoped_lock lock(state_->mutex);
  return {.files = state_->files_named, .of_files = state_->files_asked.size()};
}

ksym::Symbolizer* SymbolThread::symbolizer() {
  return WaitUntil(Clock::time_point::min()) ? &state_->symbolizer : nullptr;
}

}  // namespace profd
