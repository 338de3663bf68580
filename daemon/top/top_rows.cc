// SPDX-License-Identifier: Apache-2.0
#include "daemon/top/top_rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "daemon/output/cpu_time.h"
#include "daemon/output/hot_spots.h"
#include "daemon/profile/frame_kinds.h"
#include "daemon/profile/sample_kind.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

uint64_t TimeOf(const Profile& profile, const ProfileSample& sample) {
  return ValueOf(profile.metadata.kinds[sample.kind], sample.count,
                 sample.value);
}

ThreadState StateOfKind(const SampleKind& kind) {
  if (kind.name == kBlockedKind) return ThreadState::kBlocked;
  return kind.name == kRunnableKind ? ThreadState::kRunnable
                                    : ThreadState::kRunning;
}

// Rows of one table by what they are told apart by.
template <typename Key>
class RowsOf {
 public:
  // The row's place; made with that name if there is none.
  template <typename MakeName>
  size_t Find(const Key& key, const MakeName& make_name) {
    const auto [at, is_new] = places_.try_emplace(key, rows_.size());
    if (is_new) rows_.push_back({.name = make_name()});
    return at->second;
  }
  TopRow& operator[](size_t place) { return rows_[place]; }
  size_t size() const { return rows_.size(); }
  std::vector<TopRow> Take() { return std::move(rows_); }

 private:
  std::map<Key, size_t> places_;
  std::vector<TopRow> rows_;
};

// Adds the samples up.
class TopCounter {
 public:
  explicit TopCounter(const Profile& profile)
      : profile_(profile), row_of_frame_(profile.frames.size()) {}

  TopTables Run() {
    for (const ProfileSample& sample : profile_.samples) {
      TimesByState time;
      const ThreadState state =
          sample.parked ? ThreadState::kParked
                        : StateOfKind(profile_.metadata.kinds[sample.kind]);
      time[state] = TimeOf(profile_, sample);
      tables_.sum += time;
      const size_t function = AddToFunctions(sample, time);
      AddToThread(sample, time, function);
    }
    NameThreads();
    tables_.functions = functions_.Take();
    std::erase_if(tables_.functions,
                  [](const TopRow& row) { return row.total.sum() == 0; });
    tables_.commands = commands_.Take();
    tables_.threads = threads_.Take();
    tables_.duration_ns = profile_.metadata.duration_ns;
    tables_.lost = profile_.accounting.lost();
    tables_.cpus = CountCpus(profile_.metadata);
    return std::move(tables_);
  }

 private:
  size_t RowNamed(std::string name) {
    return functions_.Find(name, [&] { return name; });
  }

  size_t RowOfFrame(FrameId frame) {
    std::optional<size_t>& row = row_of_frame_[frame];
    if (!row) row = RowNamed(FunctionOf(profile_, profile_.frames[frame]));
    return *row;
  }

  // The frame that the sample is counted for as self; nothing: it has none.
  std::optional<FrameId> SelfFrame(const ProfileSample& sample) const {
    const auto user = profile_.Stack(sample.user);
    const auto kernel = profile_.Stack(sample.kernel);
    const bool waits = StateOfKind(profile_.metadata.kinds[sample.kind]) !=
                       ThreadState::kRunning;
    // Within the kernel all that wait are in the scheduler.
    if (waits && !user.empty()) return user.front();
    if (waits && !kernel.empty()) return kernel.back();
    if (!kernel.empty()) return kernel.front();
    if (!user.empty()) return user.front();
    return std::nullopt;
  }

  // The row of its innermost function.
  size_t AddToFunctions(const ProfileSample& sample, const TimesByState& time) {
    const auto self = sample.parked ? std::nullopt : SelfFrame(sample);
    if (!self) {
      const size_t row =
          RowNamed(std::string(sample.parked ? kParkedName : kNoStackName));
      functions_[row].self += time;
      functions_[row].total += time;
      return row;
    }
    ++sample_number_;
    for (const CallStackId stack : {sample.kernel, sample.user}) {
      for (const FrameId frame : profile_.Stack(stack)) {
        const size_t row = RowOfFrame(frame);
        if (last_sample_.size() <= row) last_sample_.resize(row + 1);
        // Once, however often a recursion is in the stack.
        if (std::exchange(last_sample_[row], sample_number_) !=
            sample_number_) {
          functions_[row].total += time;
        }
      }
    }
    const size_t row = RowOfFrame(*self);
    functions_[row].self += time;
    return row;
  }

  void AddToThread(const ProfileSample& sample, const TimesByState& time,
                   size_t function) {
    const auto comm = [&] {
      return ksym::Printable(profile_.String(sample.comm));
    };
    const auto command = commands_.Find(sample.comm, comm);
    commands_[command].self += time;
    commands_[command].total += time;
    const auto thread = threads_.Find({sample.pid, sample.tid}, comm);
    if (members_.emplace(command, thread).second) {
      ++commands_[command].threads;
    }
    TopRow& row = threads_[thread];
    row.pid = sample.pid;
    row.tid = sample.tid;
    row.self += time;
    row.total += time;
    places_[{thread, function}] += time.sum() - time[ThreadState::kParked];
  }

  // The function where each one's time is, but for that in which it is parked;
  // of equal ones the first by name.
  void NameThreads() {
    std::vector<std::pair<uint64_t, std::string_view>> best(threads_.size());
    for (const auto& [where, ns] : places_) {
      const std::string_view name = functions_[where.second].name;
      auto& [most, place] = best[where.first];
      if (place.empty() || ns > most || (ns == most && name < place)) {
        most = ns;
        place = name;
      }
    }
    for (size_t i = 0; i < best.size(); ++i) {
      threads_[i].place = best[i].second;
    }
  }

  const Profile& profile_;
  TopTables tables_;
  RowsOf<std::string> functions_;
  RowsOf<StringId> commands_;
  RowsOf<std::pair<uint32_t, uint32_t>> threads_;
  std::vector<std::optional<size_t>> row_of_frame_;
  uint64_t sample_number_ = 0;
  std::vector<uint64_t> last_sample_;            // by row of a function
  std::set<std::pair<size_t, size_t>> members_;  // command and thread
  std::map<std::pair<size_t, size_t>, uint64_t> places_;
};

}  // namespace

TimesByState& TimesByState::operator+=(const TimesByState& other) {
  for (size_t i = 0; i < kThreadStates; ++i) ns_[i] += other.ns_[i];
  return *this;
}

std::vector<ThreadLife> LivesInSamples(const Profile& profile) {
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> times;
  for (const ProfileSample& sample : profile.samples) {
    times[{sample.pid, sample.tid}] += TimeOf(profile, sample);
  }
  std::vector<ThreadLife> lives;
  lives.reserve(times.size());
  for (const auto& [id, ns] : times) {
    lives.push_back({.pid = id.first, .tid = id.second, .ns = ns});
  }
  return lives;
}

TopTables MakeTopTables(const Profile& profile) {
  return TopCounter(profile).Run();
}

}  // namespace profd
