// SPDX-License-Identifier: Apache-2.0
#include "daemon/track/process_watch.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/base/now_ns.h"
#include "daemon/track/process_state.h"

namespace profd {
namespace {

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

// Reports of one process, each times the mappings that it has, between two
// calls of Apply(): some 5 ms.
constexpr size_t kMaxMapWork = 500'000;
constexpr uint64_t kDoubtPauses = 20;
// Processes whose last such reading is remembered; beyond it all are forgotten,
// and may be read once more.
constexpr size_t kMaxSettled = 4096;

// Until when reports were lost; 0: there are none of which it is new.
uint64_t LostUntil(std::span<const SideBandEvent> events, LostReport::Of of) {
  uint64_t until_ns = 0;
  for (const SideBandEvent& event : events) {
    const auto* lost = std::get_if<LostReport>(&event.report);
    if (lost != nullptr && lost->of == of && lost->pid == 0 &&
        !lost->is_known) {
      until_ns = std::max(until_ns, lost->until_ns);
    }
  }
  return until_ns;
}

// Below that a process is not worth a table that it may never need.
constexpr double kMinBusy = 0.01;

// The process that has another address space from then on; 0: none.
uint32_t BecameAnother(const SideBandEvent& event) {
  if (const auto* exec = std::get_if<ExecReport>(&event.report)) {
    return exec->pid;
  }
  const auto* fork = std::get_if<ForkReport>(&event.report);
  return fork == nullptr ? 0 : fork->child;
}

}  // namespace

const ksym::Mapping* FindMapping(std::span<const ksym::Mapping> mappings,
                                 ksym::Address address) {
  const auto next =
      std::ranges::upper_bound(mappings, address, {}, &ksym::Mapping::start);
  if (next == mappings.begin() || address >= std::prev(next)->end) {
    return nullptr;
  }
  return &*std::prev(next);
}

std::vector<uint32_t>& ProcessWatch::Unread(std::span<const uint32_t> first) {
  if (unread_) return *unread_;
  std::vector<uint32_t> pids = ReadProcesses();
  std::ranges::sort(pids, {}, [&](uint32_t pid) {
    return std::pair(std::ranges::find(first, pid) != first.end(), pid);
  });
  return unread_.emplace(std::move(pids));
}

void ProcessWatch::ReadSome(std::span<const uint32_t> first,
                            SteadyClock::time_point until) {
  std::vector<uint32_t>& unread = Unread(first);
  while (!unread.empty() && SteadyClock::now() < until) {
    Read(unread.back());
    unread.pop_back();
  }
}

void ProcessWatch::ReadAll() {
  for (const uint32_t pid : Unread({})) Read(pid);
  unread_.reset();
  read_before_ = true;
}

// False for kernel threads, and for those that are gone or not ours to see.
bool ProcessWatch::Read(uint32_t pid) {
  const uint64_t begin = NowNs();
  auto mappings = ksym::ReadMaps(pid, LimitsOfReading());
  meanwhile_();
  if (!mappings || mappings->empty()) return false;
  CountReading(*mappings);
  readings_.push_back({.mappings = {.pid = pid,
                                    .since_ns = read_before_ ? begin : 0,
                                    .mappings = std::move(*mappings)},
                       .begin_ns = begin,
                       .end_ns = NowNs(),
                       .cpus = ReadCpusOf(pid)});
  return true;
}

std::vector<ProcessWatch::Busy> ProcessWatch::AllByUse() const {
  std::vector<Busy> all;
  all.reserve(readings_.size());
  for (const Reading& reading : readings_) {
    all.push_back({.pid = reading.mappings.pid,
                   .cpus = reading.cpus,
                   .mappings = &reading.mappings.mappings});
  }
  std::ranges::sort(all, std::greater(), &Busy::cpus);
  return all;
}

std::vector<ProcessWatch::Busy> ProcessWatch::Busiest(size_t most) const {
  std::vector<Busy> busy = AllByUse();
  std::erase_if(busy, [](const Busy& one) { return one.cpus < kMinBusy; });
  if (busy.size() > most) busy.resize(most);
  return busy;
}

// All readings that wait together have no more than the history would keep, but
// for what each may have.
ksym::MapsLimits ProcessWatch::LimitsOfReading() const {
  constexpr size_t kAlwaysMappings = 256;
  constexpr ksym::ProcessHistory::Limits kLimits;
  const auto left = [](size_t all, size_t used, size_t always) {
    return std::max(always, all - std::min(all, used));
  };
  const size_t paths =
      left(kLimits.all_path_bytes, read_path_bytes_, kLimits.always_path_bytes);
  return {.mappings = std::min(
              kLimits.read_mappings,
              left(kLimits.all_mappings, read_mappings_, kAlwaysMappings)),
          .path_bytes = std::min(kLimits.path_bytes, paths)};
}

void ProcessWatch::CountReading(const std::vector<ksym::Mapping>& mappings) {
  read_mappings_ += mappings.size();
  const ksym::SharedPath* last = nullptr;
  for (const ksym::Mapping& mapping : mappings) {
    if (last == nullptr || !mapping.path.IsSharedWith(*last)) {
      read_path_bytes_ += mapping.path.size();
    }
    last = &mapping.path;
  }
}

void ProcessWatch::ForgetReadings() {
  readings_.clear();
  read_mappings_ = 0;
  read_path_bytes_ = 0;
}

// Processes whose end was not reported would never be forgotten. Where
// reports are lost again and again this must not take all the time.
void ProcessWatch::EndUnreported() {
  constexpr uint64_t kPauses = 50;
  if (!may_have_ended_ || applied_ns_ < next_listing_ns_) return;
  may_have_ended_ = false;
  const uint64_t begin = NowNs();
  const std::vector<uint32_t> pids = ReadProcesses();
  history_.EndOthers({pids.begin(), pids.end()}, begin);
  const uint64_t end = NowNs();
  next_listing_ns_ = end + kPauses * (end - begin);
}

void ProcessWatch::NoteIfUnknown(uint32_t pid) {
  if (history_.AwaitsReading(pid)) unknown_pids_.insert(pid);
}

// Processes that nobody told of, and children of such, for the next Apply().
void ProcessWatch::ReadUnknown() {
  for (const uint32_t pid : std::exchange(unknown_pids_, {})) {
    const bool is_read = std::ranges::any_of(
        readings_, [=](const Reading& r) { return r.mappings.pid == pid; });
    if (!is_read && history_.AwaitsReading(pid) && !Read(pid)) {
      history_.GiveUp(pid, applied_ns_);
    }
  }
}

// A process that became another one while it was read: which of the two the
// mappings are of is not known. Its reports tell all about the new one.
void ProcessWatch::CorrectReadings(const std::vector<SideBandEvent>& events) {
  std::unordered_map<uint32_t, const Reading*> by_pid;
  for (const Reading& reading : readings_) {
    by_pid.emplace(reading.mappings.pid, &reading);
  }
  std::unordered_set<uint32_t> dropped;
  for (const SideBandEvent& event : events) {
    const uint32_t pid = BecameAnother(event);
    const auto at = by_pid.find(pid);
    if (at == by_pid.end()) continue;
    const auto& [begin_ns, end_ns] =
        std::pair(at->second->begin_ns, at->second->end_ns);
    if (event.time_ns >= begin_ns && event.time_ns <= end_ns) {
      dropped.insert(pid);
    }
  }
  std::erase_if(readings_, [&](const Reading& reading) {
    return dropped.contains(reading.mappings.pid);
  });
}

void ProcessWatch::Apply(std::vector<SideBandEvent> events, uint64_t until_ns) {
  if (const auto lost_ns = LostUntil(events, LostReport::Of::kProcesses)) {
    history_.LoseTrack(lost_ns);
    may_have_ended_ = true;
  }
  if (LostUntil(events, LostReport::Of::kMappings) != 0) LoseMappings(until_ns);
  LeaveFloodsOut(events);
  CorrectReadings(events);
  const uint64_t begin_ns = NowNs();
  const bool has_readings = !readings_.empty();
  auto reading = readings_.begin();
  // Readings and reports in the order of time: a report that is older than a
  // reading is in it already, and a newer one changes what was read.
  const auto seed_until = [&](uint64_t time_ns) {
    for (; reading != readings_.end() && reading->begin_ns <= time_ns;
         ++reading) {
      changed_pids_.insert(reading->mappings.pid);
      history_.Seed(std::move(reading->mappings), reading->begin_ns);
    }
  };
  for (SideBandEvent& event : events) {
    seed_until(event.time_ns);
    ApplyOne(std::move(event));
  }
  seed_until(until_ns);
  ForgetReadings();
  if (has_readings) doubt_cost_ns_ += NowNs() - begin_ns;
  applied_ns_ = until_ns;
  // Only now is it known which processes are missing. A reading counts from the
  // next call on, which has the reports of the time in between.
  EndUnreported();
  ReadUnknown();
  ReadDoubted();
}

// Any process may have mapped something. Those that are not sampled do not
// matter until they are.
void ProcessWatch::LoseMappings(uint64_t until_ns) {
  mappings_lost_ns_ = until_ns;
  for (const Bound& bound : bound_) {
    for (const auto& [id, generation] : bound) doubted_pids_.insert(id.pid);
  }
}

// A process that maps as fast as it can would take all of our time, because a
// report costs more the more mappings there are. It is read instead.
void ProcessWatch::LeaveFloodsOut(std::vector<SideBandEvent>& events) {
  std::unordered_map<uint32_t, size_t> reports;
  for (const SideBandEvent& event : events) {
    if (const auto* map = std::get_if<MapReport>(&event.report)) {
      ++reports[map->pid];
    } else if (const auto* lost = std::get_if<LostReport>(&event.report)) {
      if (lost->pid != 0) reports[lost->pid] += lost->count;
    }
  }
  std::erase_if(reports, [&](const auto& entry) {
    const auto& [pid, count] = entry;
    const auto* known = history_.Mappings(history_.Find(pid, applied_ns_));
    return known == nullptr || count * known->size() <= kMaxMapWork;
  });
  if (reports.empty()) return;
  for (const auto& [pid, count] : reports) doubted_pids_.insert(pid);
  std::erase_if(events, [&](const SideBandEvent& event) {
    const auto* map = std::get_if<MapReport>(&event.report);
    return map != nullptr && reports.contains(map->pid);
  });
}

// Where reports are lost all the time this would be all that is done, so it
// pauses for a multiple of what the last readings cost.
void ProcessWatch::ReadDoubted() {
  if (doubted_pids_.empty()) return;
  const uint64_t begin = NowNs();
  if (begin < next_doubt_ns_ + kDoubtPauses * doubt_cost_ns_) return;
  for (const uint32_t pid : std::exchange(doubted_pids_, {})) {
    settled_ns_[pid] = begin;
    const bool is_read = std::ranges::any_of(
        readings_, [=](const Reading& r) { return r.mappings.pid == pid; });
    if (!is_read) Read(pid);
  }
  next_doubt_ns_ = NowNs();
  doubt_cost_ns_ = next_doubt_ns_ - begin;
}

void ProcessWatch::ApplyOne(SideBandEvent event) {
  const uint64_t time = event.time_ns;
  std::visit(
      Overloaded{[&](const ForkReport& r) {
                   history_.Fork(r.parent, r.child, time);
                   NoteIfUnknown(r.child);
                   NoteIfUnknown(r.parent);
                 },
                 [&](const ExecReport& r) { history_.Exec(r.pid, time); },
                 [&](MapReport& r) {
                   changed_pids_.insert(r.pid);
                   history_.Map(r.pid, std::move(r.mapping), time);
                   NoteIfUnknown(r.pid);
                 },
                 [&](const ExitReport& r) { history_.End(r.pid, time); },
                 [](const auto&) {}},
      event.report);
}

void ProcessWatch::See(std::span<SampleHint> hints) {
  std::ranges::stable_sort(hints, {}, &SampleHint::time_ns);
  for (const SampleHint& hint : hints) SeeOne(hint);
}

void ProcessWatch::SeeOne(const SampleHint& hint) {
  // 0: idle, without an address space. The first hint of the set counts, after
  // which the mappings were known.
  if (hint.id.pid == 0) return;
  const auto generation = history_.See(hint.id, hint.time_ns);
  NoteIfUnknown(hint.id.pid);
  const auto [bound, is_new] =
      bound_[hint.set].try_emplace(hint.id, generation);
  if (!is_new) {
    if (history_.Mappings(bound->second) != nullptr) return;
    if (std::exchange(bound->second, generation) == generation) return;
  }
  if (mappings_lost_ns_ != 0) {
    const auto settled = settled_ns_.find(hint.id.pid);
    if (settled == settled_ns_.end() || settled->second < mappings_lost_ns_) {
      doubted_pids_.insert(hint.id.pid);
    }
  }
  new_bound_.push_back(*bound);
}

// Most reports are of processes that have no samples.
void ProcessWatch::TellObserver() {
  for (const auto& [id, generation] : std::exchange(new_bound_, {})) {
    Tell(id, generation);
  }
  for (const uint32_t pid : std::exchange(changed_pids_, {})) {
    for (const Bound& bound : bound_) {
      auto at = bound.lower_bound({.pid = pid});
      for (; at != bound.end() && at->first.pid == pid; ++at) {
        Tell(at->first, at->second);
      }
    }
  }
}

void ProcessWatch::Tell(const ksym::ProcessId& id,
                        ksym::ProcessHistory::GenerationId generation) {
  const auto* mappings = history_.Mappings(generation);
  if (mappings == nullptr) return;
  const uint64_t version = history_.Version(generation);
  const auto [told, is_new] =
      told_.try_emplace(std::pair(generation, id), version);
  if (!is_new && std::exchange(told->second, version) == version) return;
  observer_({.id = id, .mappings = *mappings});
}

ksym::ProcessHistory::GenerationId ProcessWatch::GenerationOf(
    const ksym::ProcessId& id, const TakenSet& taken) {
  // Without a hint the time is not known, and the generation only if the
  // process had no other.
  Bound& bound = bound_[taken.set];
  const auto [own, is_new] = bound.try_emplace(id);
  if (is_new) {
    own->second = history_.FindOnly(id, interval_begin_ns_, taken.end_ns);
  }
  // An exec is reported before it counts: a sample between the two has the old
  // number and a time of the new program (begin_new_exec() in fs/exec.c).
  ksym::ProcessId next = id;
  ++next.exec_count;
  const auto after = bound.find(next);
  const bool is_late = after != bound.end() && after->second == own->second;
  return is_late ? history_.BeforeExec(own->second) : own->second;
}

ProcessWatch::Answer ProcessWatch::Find(const ksym::ProcessId& id,
                                        std::span<const uint64_t> frames,
                                        const TakenSet& taken) {
  const auto contains = [&](ksym::ProcessHistory::GenerationId generation,
                            uint64_t frame) {
    const auto* mappings = history_.Mappings(generation);
    return mappings != nullptr &&
           FindMapping(*mappings, ksym::Address{frame}) != nullptr;
  };
  auto generation = GenerationOf(id, taken);
  ksym::ProcessId answer = id;
  if (!frames.empty() && !contains(generation, frames.front())) {
    const auto previous = history_.BeforeExec(generation);
    if (contains(previous, frames.front())) {
      generation = previous;
      --answer.exec_count;
    }
  }
  return {.id = answer, .generation = generation};
}

std::vector<ksym::Mapping> ProcessWatch::MappingsOf(
    const Answer& answer) const {
  const auto* known = history_.Mappings(answer.generation);
  if (known == nullptr) return {};
  std::vector<ksym::Mapping> mappings = *known;
  MarkReplaced(answer.generation, [](const auto&) { return true; }, mappings);
  return mappings;
}

std::vector<ksym::Mapping> ProcessWatch::MappingsOf(
    const Answer& answer, std::span<const ksym::Address> used) const {
  const auto* known = history_.Mappings(answer.generation);
  if (known == nullptr) return {};
  std::vector<ksym::Mapping> mappings;
  for (const ksym::Address address : used) {
    // The addresses are sorted: one mapping's follow each other.
    if (!mappings.empty() && address < mappings.back().end) continue;
    const ksym::Mapping* const found = FindMapping(*known, address);
    if (found != nullptr) mappings.push_back(*found);
  }
  MarkReplaced(
      answer.generation,
      [&](const auto& change) {
        const auto next = std::ranges::lower_bound(used, change.start);
        return next != used.end() && *next < change.end;
      },
      mappings);
  return mappings;
}

template <typename Predicate>
void ProcessWatch::MarkReplaced(ksym::ProcessHistory::GenerationId generation,
                                const Predicate& is_wanted,
                                std::vector<ksym::Mapping>& mappings) const {
  for (const auto& change : history_.Changes(generation)) {
    if (change.time_ns < interval_begin_ns_ || !is_wanted(change)) continue;
    ksym::Mapping replaced;
    replaced.start = change.start;
    replaced.end = change.end;
    replaced.path = ksym::kReplacedPath;
    ksym::InsertMapping(mappings, std::move(replaced));
  }
}

size_t ProcessWatch::CountMappings(const Answer& answer) const {
  const auto* known = history_.Mappings(answer.generation);
  return known == nullptr ? 0 : known->size();
}

std::span<const ksym::Mapping> ProcessWatch::MappingsAt(
    uint32_t pid, uint64_t time_ns, ksym::Address address) const {
  const auto generation = history_.FindSure(pid, time_ns);
  for (const auto id : {generation, history_.BeforeExec(generation)}) {
    const auto* mappings = history_.Mappings(id);
    if (mappings != nullptr && FindMapping(*mappings, address) != nullptr) {
      return *mappings;
    }
  }
  const auto* mappings = history_.Mappings(generation);
  if (mappings == nullptr) return {};
  return *mappings;
}

void ProcessWatch::EndInterval(const TakenSet& taken) {
  // The set's next samples come with hints of their own.
  bound_[taken.set].clear();
  if (settled_ns_.size() > kMaxSettled) settled_ns_.clear();
  const size_t before = history_.generations();
  // What ended before this interval began has no more samples: those of the
  // other set are younger.
  history_.Forget(interval_begin_ns_);
  if (history_.generations() != before) ReportGone();
  // The other set has no sample that is older.
  interval_begin_ns_ = taken.flip_ns;
}

void ProcessWatch::ReportGone() {
  std::set<ksym::ProcessId> gone;
  std::erase_if(told_, [&](const auto& told) {
    const auto& [generation, id] = told.first;
    if (history_.Mappings(generation) != nullptr) return false;
    gone.insert(id);
    return true;
  });
  // After lost reports one process may have had two generations.
  for (const auto& told : told_) gone.erase(told.first.second);
  for (const ksym::ProcessId& id : gone) on_gone_(id);
}

}  // namespace profd
