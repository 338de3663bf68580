// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/line_builder.h"

#include <sched.h>

#include <utility>

namespace profd {
namespace {

// Programs that wait; each holds a descriptor.
constexpr size_t kMaxTasks = 256;

}  // namespace

LineBuilder::LineBuilder(LineBuilderOptions options)
    : options_(std::move(options)), thread_([this] { Run(); }) {}

// The program that is being read is given up at its next unit of debug data;
// those that wait are dropped.
LineBuilder::~LineBuilder() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool LineBuilder::Add(std::string_view build_id, std::string_view path,
                      ksym::Symbolizer::ProgramFile program) {
  const std::lock_guard lock(mutex_);
  if (tasks_.size() >= kMaxTasks) return false;
  tasks_.push_back(
      {std::string(build_id), std::string(path), std::move(program)});
  changed_.notify_all();
  return true;
}

std::vector<LineBuilder::Done> LineBuilder::TakeDone() {
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

std::optional<LineBuilder::Task> LineBuilder::Next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
  if (stop_) return std::nullopt;
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

LineBuilder::Done LineBuilder::Make(const Task& task) {
  Done done = {.build_id = task.build_id, .path = task.path, .error = {}};
  if (!cache_) {
    done.error = cache_error_;
    return done;
  }
  const LineConversion made =
      ConvertLines(task.program, {.max_file_bytes = options_.max_file_bytes,
                                  .has_to_stop = [this] { return +stop_; }});
  switch (made.outcome) {
    case LineConversion::Outcome::kMade:
      break;
    case LineConversion::Outcome::kBare:
      done.outcome = Outcome::kBare;
      return done;
    case LineConversion::Outcome::kGivenUp:
    case LineConversion::Outcome::kFailed:
      done.error = made.error;
      return done;
  }
  // A service takes lines from the cache alone (LineFiles::Make()), which has
  // nothing that another user could have written.
  if (!made.can_be_kept) {
    done.outcome = Outcome::kUntrusted;
    return done;
  }
  const auto stored = cache_->Store(task.build_id, made.bytes);
  if (stored) {
    done.outcome = Outcome::kStored;
  } else {
    done.error = stored.error().message();
  }
  return done;
}

void LineBuilder::Run() {
  // Only when there is nothing else to do.
  const sched_param parameters = {};
  ::sched_setscheduler(0, SCHED_IDLE, &parameters);
  auto cache =
      ksym::GsymCache::Open(options_.cache_directory, options_.cache_bytes);
  if (cache) {
    cache_ = std::move(*cache);
  } else {
    cache_error_ = cache.error().message();
  }
  while (const auto task = Next()) {
    Done done = Make(*task);
    const std::lock_guard lock(mutex_);
    done_.push_back(std::move(done));
  }
}

}  // namespace profd
