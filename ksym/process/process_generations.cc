// SPDX-License-Identifier: Apache-2.0
// The part of ProcessHistory that knows which process and program a generation
// is of, also where reports were lost.

#include <algorithm>
#include <iterator>
#include <utility>

#include "ksym/process/process_history.h"

namespace ksym {

ProcessHistory::Generation* ProcessHistory::Begin(
    uint32_t pid, uint64_t time_ns, std::shared_ptr<MappingList> mappings) {
  const auto life = lives_.find(pid);
  if (by_id_.size() >= limits_.generations) {
    ++statistics_.generations_dropped;
    if (life == lives_.end()) return nullptr;
    // What comes now must not be taken for what was before.
    by_id_.erase(life->second.generations.front().id);
    life->second.generations.pop_front();
  }
  auto& generations = lives_[pid].generations;
  if (!generations.empty()) {
    Generation& last = generations.back();
    last.end_ns = std::min(last.end_ns, time_ns);
    forgettable_.insert(pid);
  }
  generations.push_back({.id = next_id_++,
                         .begin_ns = time_ns,
                         .pid = pid,
                         .sure_ns = time_ns,
                         .sampled = {},
                         .in_doubt = {},
                         .mappings = std::move(mappings),
                         .changes = {}});
  by_id_.emplace(generations.back().id, pid);
  return &generations.back();
}

ProcessHistory::Generation* ProcessHistory::Succeed(const Generation* doubted,
                                                    uint32_t pid,
                                                    uint64_t time_ns,
                                                    uint64_t changed_since_ns) {
  ProcessId sampled;
  std::vector<Change> changes;
  if (doubted != nullptr) {
    sampled = doubted->sampled;
    changes = doubted->changes;
    changes.push_back(doubted->in_doubt);
    std::erase_if(changes, [=](const Change& change) {
      return change.time_ns <= changed_since_ns;
    });
  }
  Generation* next = Begin(pid, time_ns, nullptr);
  if (next == nullptr) return nullptr;
  next->sampled = sampled;
  next->changes = std::move(changes);
  return next;
}

ProcessHistory::Generation* ProcessHistory::Last(uint32_t pid) {
  const auto life = lives_.find(pid);
  return life == lives_.end() ? nullptr : &life->second.generations.back();
}

ProcessHistory::Generation* ProcessHistory::Present(uint32_t pid,
                                                    uint64_t time_ns) {
  Generation* last = Last(pid);
  return last != nullptr && IsSure(*last, time_ns) ? last : nullptr;
}

bool ProcessHistory::IsSure(const Generation& generation,
                            uint64_t time_ns) const {
  return generation.sure_ns >= lost_ns_ || generation.sure_ns >= time_ns;
}

// A process whose first thread ended may go on.
void ProcessHistory::Confirm(Generation& generation, uint64_t time_ns) {
  generation.sure_ns = std::max(generation.sure_ns, time_ns);
  generation.end_ns = std::max(generation.end_ns, time_ns);
  if (generation.in_doubt.time_ns <= time_ns) generation.in_doubt = {};
}

// The generation that a reading of that time tells of, with mappings.
ProcessHistory::Generation* ProcessHistory::Seeded(Reading& reading,
                                                   uint64_t time_ns) {
  Generation* last = Last(reading.pid);
  if (last == nullptr) return Begin(reading.pid, reading.since_ns, NewList());
  const bool is_known = last->mappings != nullptr;
  if (!IsSure(*last, time_ns) || (!is_known && !last->awaits_reading)) {
    last = Succeed(last, reading.pid, time_ns, /*changed_since_ns=*/0);
  } else if (!is_known && lives_[reading.pid].generations.size() == 1) {
    last->begin_ns = std::min(last->begin_ns, reading.since_ns);
  }
  if (last == nullptr) return nullptr;
  Confirm(*last, time_ns);
  last->awaits_reading = false;
  if (last->mappings == nullptr) last->mappings = NewList();
  return last;
}

void ProcessHistory::LoseTrack(uint64_t until_ns) {
  lost_ns_ = std::max(lost_ns_, until_ns);
}

void ProcessHistory::EndOthers(const std::unordered_set<uint32_t>& pids,
                               uint64_t time_ns) {
  for (auto& [pid, life] : lives_) {
    const Generation& last = life.generations.back();
    if (last.begin_ns < time_ns && !pids.contains(pid)) End(pid, time_ns);
  }
}

void ProcessHistory::Fork(uint32_t parent, uint32_t child, uint64_t time_ns) {
  std::shared_ptr<MappingList> mappings;
  if (Generation* from = Last(parent)) {
    // The next child will not need to be read.
    if (!IsSure(*from, time_ns)) from->awaits_reading = true;
    if (IsSure(*from, time_ns)) mappings = from->mappings;
  }
  Generation* generation = Begin(child, time_ns, std::move(mappings));
  if (generation == nullptr) return;
  // The child of an unknown parent is unknown, too.
  generation->awaits_reading = generation->mappings == nullptr;
}

void ProcessHistory::Exec(uint32_t pid, uint64_t time_ns) {
  const bool was_there = Present(pid, time_ns) != nullptr;
  Generation* generation = Begin(pid, time_ns, NewList());
  if (generation != nullptr) generation->by_exec = was_there;
}

void ProcessHistory::End(uint32_t pid, uint64_t time_ns) {
  Generation* last = Last(pid);
  if (last == nullptr) return;
  last->end_ns = std::min(last->end_ns, time_ns);
  forgettable_.insert(pid);
}

ProcessHistory::GenerationId ProcessHistory::See(const ProcessId& id,
                                                 uint64_t time_ns) {
  Generation* last = Last(id.pid);
  if (last == nullptr && lost_ns_ == 0) return 0;
  if (last != nullptr && last->begin_ns > time_ns) {
    return FindSure(id.pid, time_ns);
  }
  if (last != nullptr && (IsSure(*last, time_ns) || last->sampled == id)) {
    last->sampled = id;
    Confirm(*last, time_ns);
    return last->id;
  }
  last = Succeed(last, id.pid, time_ns, time_ns);
  if (last == nullptr) return 0;
  last->sampled = id;
  last->awaits_reading = true;
  return last->id;
}

bool ProcessHistory::AwaitsReading(uint32_t pid) const {
  const auto life = lives_.find(pid);
  if (life == lives_.end()) return false;
  const Generation& last = life->second.generations.back();
  return last.awaits_reading && last.end_ns == kNever;
}

void ProcessHistory::GiveUp(uint32_t pid, uint64_t time_ns) {
  if (AwaitsReading(pid)) End(pid, time_ns);
}

ProcessHistory::GenerationId ProcessHistory::Find(uint32_t pid,
                                                  uint64_t time_ns) const {
  const auto life = lives_.find(pid);
  if (life == lives_.end()) return 0;
  const auto& generations = life->second.generations;
  // The last that had begun. One that ended stands in for the time after: a
  // process is sampled in its own exit, too.
  const auto next =
      std::ranges::upper_bound(generations, time_ns, {}, &Generation::begin_ns);
  return next == generations.begin() ? 0 : std::prev(next)->id;
}

ProcessHistory::GenerationId ProcessHistory::FindSure(uint32_t pid,
                                                      uint64_t time_ns) const {
  const auto id = Find(pid, time_ns);
  return id != 0 && IsSure(*Get(id), time_ns) ? id : 0;
}

ProcessHistory::GenerationId ProcessHistory::FindOnly(const ProcessId& process,
                                                      uint64_t begin_ns,
                                                      uint64_t end_ns) const {
  const auto id = Find(process.pid, end_ns);
  if (id == 0) return 0;
  const Generation* generation = Get(id);
  // What began within the time stands alone only if it is the first.
  const bool is_only = generation->begin_ns <= begin_ns || Previous(id) == 0;
  const bool is_its =
      IsSure(*generation, end_ns) || generation->sampled == process;
  return is_only && is_its ? id : 0;
}

const ProcessHistory::Generation* ProcessHistory::Get(GenerationId id) const {
  const auto pid = by_id_.find(id);
  if (pid == by_id_.end()) return nullptr;
  const auto& life = lives_.at(pid->second).generations;
  const auto at = std::ranges::lower_bound(life, id, {}, &Generation::id);
  return at == life.end() || at->id != id ? nullptr : &*at;
}

ProcessHistory::GenerationId ProcessHistory::BeforeExec(GenerationId id) const {
  const Generation* generation = Get(id);
  return generation != nullptr && generation->by_exec ? Previous(id) : 0;
}

// The one before, in the same process or one that had its number.
ProcessHistory::GenerationId ProcessHistory::Previous(GenerationId id) const {
  const auto pid = by_id_.find(id);
  if (pid == by_id_.end()) return 0;
  const auto& life = lives_.at(pid->second).generations;
  const auto at = std::ranges::lower_bound(life, id, {}, &Generation::id);
  return at == life.begin() || at == life.end() ? 0 : std::prev(at)->id;
}

}  // namespace ksym
