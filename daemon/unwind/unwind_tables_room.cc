// SPDX-License-Identifier: Apache-2.0
// The part of UnwindTables that keeps within its memory: what goes when there
// is no room, and what goes because nobody needed it for long.

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "daemon/unwind/unwind_tables.h"

namespace profd {
namespace {

using std::chrono::seconds;

// How long a table that nobody maps is kept for the next one who does.
constexpr seconds kKeepUnused(30);
// How often that is looked at.
constexpr seconds kSweepPeriod(1);
// A process that was sampled since then keeps its tables.
constexpr seconds kKeepSampled(2);
// Processes that may go for others' lists, between two calls of Recycle().
constexpr uint32_t kMostEvicted = 16;
// Bytes of rows in this process, beside those that the sampler has.
constexpr uint64_t kMostRowBytes = 48 << 20;

}  // namespace

// Frees about that many slots, if it can; true when it freed any.
bool UnwindTables::MakeRoom(uint64_t slots) {
  if (slots > maps_.max_slots()) return false;
  uint64_t freed = 0;
  while (freed < slots) {
    const uint64_t more = EvictFile();
    if (more == 0 && !EvictProcess()) break;
    freed += more;
  }
  return freed > 0;
}

// Drops the table that nobody has mapped for longest; 0: there is none.
uint64_t UnwindTables::EvictFile() {
  const auto can_go = [](const File& file) {
    return file.users == 0 && file.job == 0 &&
           file.state == File::State::kReady;
  };
  const auto longest_unused =
      std::ranges::min_element(files_, {}, [&](const auto& entry) {
        return std::pair(!can_go(*entry.second), entry.second->used);
      });
  if (longest_unused == files_.end() || !can_go(*longest_unused->second)) {
    return 0;
  }
  const uint64_t slots = Discard(*longest_unused->second);
  files_.erase(longest_unused);
  ++statistics_.files_evicted;
  return slots;
}

// There is no room for the process's list, which has so many entries, or it
// could not be written (0).
void UnwindTables::RefuseList(const ksym::ProcessId& id, Process& process,
                              size_t entries) {
  ++statistics_.processes_refused;
  const bool had_list = std::exchange(process.published, false);
  // Half of the truth would be a wrong stack.
  maps_.Withdraw(id);
  process.changed = true;
  process.refused = Clock::now();
  if (entries == 0 || entries > maps_.max_entries()) return;
  // What goes now is room after the next Recycle().
  if (!had_list && evicted_for_lists_ < kMostEvicted && EvictProcess()) {
    ++evicted_for_lists_;
  }
  if (had_list || evicted_for_lists_ > 0) process.refused -= kKeepSampled;
}

// Withdraws the process that was not sampled for longest, so that its files may
// go. False: all were sampled a moment ago.
bool UnwindTables::EvictProcess() {
  const auto longest_unseen =
      std::ranges::min_element(processes_, {}, [](const auto& entry) {
        return std::pair(!entry.second.published, entry.second.seen);
      });
  if (longest_unseen == processes_.end() || !longest_unseen->second.published ||
      longest_unseen->second.seen + kKeepSampled > Clock::now()) {
    return false;
  }
  Process& process = longest_unseen->second;
  maps_.Withdraw(longest_unseen->first);
  Release(process);
  process.published = false;
  process.evicted = true;
  stale_.erase(longest_unseen->first);
  ++statistics_.processes_evicted;
  return true;
}

// The sampler has its own copy: here they serve stacks that were copied.
void UnwindTables::DropRows() {
  if (row_bytes_ <= kMostRowBytes) return;
  std::vector<File*> files;
  for (const auto& [key, file] : files_) {
    // What has no place yet will get one, and then they can go.
    const bool has_to_stay = file->is_pending() && file->users > 0;
    if (file->rows && !has_to_stay) files.push_back(file.get());
  }
  std::ranges::sort(files, {}, &File::used);
  for (File* file : files) {
    if (row_bytes_ <= kMostRowBytes) return;
    SetRows(*file, nullptr);
  }
}

// By now those that had the room may not be sampled any more, and what could
// not be opened may have another process.
void UnwindTables::RetryRefused() {
  if (statistics_.files_refused + statistics_.files_failed +
          statistics_.processes_refused ==
      0) {
    return;
  }
  const auto before = Clock::now() - kKeepSampled;
  bool again = false;
  for (auto& [id, process] : processes_) {
    if (process.refused != Clock::time_point() && process.refused <= before &&
        process.seen > process.refused) {
      process.refused = {};
      stale_.insert(id);
    }
    for (File* file : process.files) {
      if (file == nullptr || file->state != File::State::kRefused ||
          file->refused > before || process.seen <= file->refused) {
        continue;
      }
      file->state = File::State::kPending;
      again = true;
    }
  }
  if (again) FindStale();
}

void UnwindTables::Recycle() {
  maps_.Recycle();
  waits_for_room_ = false;
  evicted_for_lists_ = 0;
  RetryRefused();
  DropRows();
  const auto now = Clock::now();
  if (now < next_sweep_) return;
  next_sweep_ = now + kSweepPeriod;
  for (auto file = files_.begin(); file != files_.end();) {
    if (file->second->users > 0 || file->second->job != 0 ||
        file->second->used + kKeepUnused > now) {
      ++file;
      continue;
    }
    Discard(*file->second);
    file = files_.erase(file);
  }
}

}  // namespace profd
