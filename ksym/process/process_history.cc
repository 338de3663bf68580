// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/process_history.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ksym {
namespace {

// A reading that brings more puts them into the list all at once.
constexpr size_t kMaxPuts = 64;

}  // namespace

ProcessHistory::Generation* ProcessHistory::Begin(
    uint32_t pid, uint64_t time_ns, std::shared_ptr<MappingList> mappings) {
  const auto life = lives_.find(pid);
  if (by_id_.size() >= limits_.generations) {
    // A process that is known pays with its own oldest generation, so that one
    // that execs without end takes no room from others.
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
  // What is read now may be another process's than what was known of that
  // number, so a generation of its own begins.
  if (!IsSure(*last, time_ns) || (!is_known && !last->awaits_reading)) {
    last = Succeed(last, reading.pid, time_ns, /*changed_since_ns=*/0);
  } else if (!is_known && lives_[reading.pid].generations.size() == 1) {
    last->begin_ns = std::min(last->begin_ns, reading.since_ns);
  }
  if (last == nullptr) return nullptr;
  // Before the mappings are put: those that were mapped while it was in doubt
  // are in the reading, or gone.
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
  // Asked first: after Begin() the new one is the present one.
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
  // A sample may be read after later reports. It cannot begin a generation
  // before the last one.
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

MappingList& ProcessHistory::Own(Generation& generation) {
  if (generation.mappings.use_count() > 1) {
    generation.mappings = std::make_shared<MappingList>(*generation.mappings);
  }
  ++generation.version;
  return *generation.mappings;
}

void ProcessHistory::AddChange(Generation& generation, const Change& change) {
  forgettable_.insert(generation.pid);
  std::vector<Change>& changes = generation.changes;
  const auto same = std::ranges::find_if(changes, [&](const Change& other) {
    return other.start == change.start && other.end == change.end;
  });
  if (same != changes.end()) {
    same->time_ns = change.time_ns;
    return;
  }
  changes.push_back(change);
  if (changes.size() <= limits_.changes) return;
  // One that has all of them: who maps without end does it in one place, and
  // its program and libraries are in others.
  Change all = change;
  for (const Change& one : changes) {
    all.start = std::min(all.start, one.start);
    all.end = std::max(all.end, one.end);
  }
  changes.assign(1, all);
}

void ProcessHistory::Put(Generation& generation, Mapping mapping,
                         uint64_t time_ns, size_t limit) {
  if (generation.mappings == nullptr) return;
  const MappingList& known = *generation.mappings;
  const size_t count = known.get().size();
  limit = std::max(limit, count);
  const auto covered = known.Overlapping(mapping.start, mapping.end);
  const auto is_too_large = [](const Mapping& old) {
    return old.path == kTooLargePath;
  };
  if (count >= limit && std::ranges::all_of(covered, is_too_large)) {
    ++statistics_.mappings_dropped;
    Own(generation).InsertTooLarge(std::move(mapping));
    return;
  }
  SharePath(generation, mapping);
  for (const Mapping& old : covered) {
    if (HaveSameBytes(old, mapping)) continue;
    AddChange(generation, {.time_ns = time_ns,
                           .start = std::max(old.start, mapping.start),
                           .end = std::min(old.end, mapping.end)});
  }
  // The changes were told from the old list, which `covered` is a part of.
  if (!Own(generation).Insert(std::move(mapping), limit)) {
    ++statistics_.mappings_dropped;
  }
  if (*all_mappings_ > limits_.all_mappings) GiveUpLongestList();
}

void ProcessHistory::SharePath(Generation& generation, Mapping& mapping) {
  if (mapping.path.empty()) return;
  const SharedPath* known = paths_.Find(mapping.path);
  if (known != nullptr) {
    mapping.path = *known;
    return;
  }
  const size_t size = mapping.path.size();
  const size_t allowed = paths_.bytes() + size > limits_.all_path_bytes
                             ? limits_.always_path_bytes
                             : limits_.path_bytes;
  if (generation.path_bytes + size > allowed) {
    ++statistics_.mappings_dropped;
    ForgetFile(mapping);
    return;
  }
  generation.path_bytes += size;
  paths_.Add(mapping.path);
}

// Takes the list from all generations that share it.
void ProcessHistory::GiveUpLongestList() {
  const MappingList* longest = nullptr;
  for (const auto& [pid, life] : lives_) {
    for (const Generation& generation : life.generations) {
      const MappingList* list = generation.mappings.get();
      if (list == nullptr) continue;
      if (longest == nullptr || list->get().size() > longest->get().size()) {
        longest = list;
      }
    }
  }
  if (longest == nullptr || longest->get().size() < 2) return;
  statistics_.mappings_dropped += longest->get().size();
  Mapping all;
  all.start = longest->get().front().start;
  all.end = longest->get().back().end;
  all.path = kTooLargePath;
  const auto list = NewList();
  list->Assign({all});
  for (auto& [pid, life] : lives_) {
    for (Generation& generation : life.generations) {
      if (generation.mappings.get() != longest) continue;
      generation.mappings = list;
      ++generation.version;
    }
  }
}

void ProcessHistory::Seed(Reading reading, uint64_t time_ns) {
  Generation* generation = Seeded(reading, time_ns);
  if (generation == nullptr) return;
  const auto is_known = [&](const Mapping& mapping) {
    const std::vector<Mapping>& known = generation->mappings->get();
    const auto at =
        std::ranges::lower_bound(known, mapping.start, {}, &Mapping::start);
    return at != known.end() && at->start == mapping.start &&
           at->end == mapping.end && HaveSameBytes(*at, mapping);
  };
  std::erase_if(reading.mappings, is_known);
  if (reading.mappings.size() > kMaxPuts &&
      !generation->mappings->get().empty()) {
    PutAll(*generation, std::move(reading.mappings), time_ns);
    return;
  }
  for (Mapping& mapping : reading.mappings) {
    if (mapping.path == kTooLargePath) ++statistics_.mappings_dropped;
    Put(*generation, std::move(mapping), time_ns, limits_.read_mappings);
  }
}

// As Put() of each, at the cost of one look at both lists: what they cover is
// changed, and goes whole.
void ProcessHistory::PutAll(Generation& generation,
                            std::vector<Mapping> mappings, uint64_t time_ns) {
  for (Mapping& mapping : mappings) {
    if (mapping.path == kTooLargePath) ++statistics_.mappings_dropped;
    SharePath(generation, mapping);
  }
  std::vector<Mapping> all;
  auto fresh = mappings.cbegin();
  for (const Mapping& old : generation.mappings->get()) {
    while (fresh != mappings.cend() && fresh->end <= old.start) ++fresh;
    if (fresh == mappings.cend() || fresh->start >= old.end) {
      all.push_back(old);
      continue;
    }
    AddChange(generation,
              {.time_ns = time_ns, .start = old.start, .end = old.end});
  }
  const size_t kept = all.size();
  std::ranges::move(mappings, std::back_inserter(all));
  std::ranges::inplace_merge(all,
                             all.begin() + static_cast<std::ptrdiff_t>(kept),
                             {}, &Mapping::start);
  if (all.size() > limits_.read_mappings) {
    statistics_.mappings_dropped += all.size() - limits_.read_mappings;
    all.resize(limits_.read_mappings);
  }
  Own(generation).Assign(std::move(all));
  if (*all_mappings_ > limits_.all_mappings) GiveUpLongestList();
}

void ProcessHistory::Map(uint32_t pid, Mapping mapping, uint64_t time_ns) {
  Generation* generation = Last(pid);
  const bool is_sure = generation != nullptr && IsSure(*generation, time_ns);
  if (generation == nullptr || (!is_sure && generation->end_ns <= time_ns)) {
    // Its fork was not reported: it was there before, or the report was lost.
    generation = Begin(pid, time_ns, nullptr);
    if (generation == nullptr) return;
    generation->awaits_reading = true;
  } else if (is_sure) {
    Confirm(*generation, time_ns);
  } else {
    Change& all = generation->in_doubt;
    all.start =
        all.time_ns == 0 ? mapping.start : std::min(all.start, mapping.start);
    all.end = std::max(all.end, mapping.end);
    all.time_ns = time_ns;
  }
  if (generation->mappings == nullptr) {
    // One mapping of many would not tell which program it is. What was here
    // before is not known.
    AddChange(*generation, {time_ns, mapping.start, mapping.end});
    return;
  }
  Put(*generation, std::move(mapping), time_ns, limits_.mappings);
}

const std::vector<Mapping>* ProcessHistory::Mappings(GenerationId id) const {
  const Generation* generation = Get(id);
  const bool is_known =
      generation != nullptr && generation->mappings != nullptr;
  return is_known ? &generation->mappings->get() : nullptr;
}

uint64_t ProcessHistory::Version(GenerationId id) const {
  const Generation* generation = Get(id);
  return generation == nullptr ? 0 : generation->version;
}

std::span<const ProcessHistory::Change> ProcessHistory::Changes(
    GenerationId id) const {
  const Generation* generation = Get(id);
  if (generation == nullptr) return {};
  return generation->changes;
}

void ProcessHistory::Forget(uint64_t before_ns) {
  // Not each time: it looks at all paths.
  constexpr size_t kFewBytes = size_t{256} << 10;
  constexpr unsigned kTimes = 8;
  if (paths_.bytes() > kFewBytes && ++forgot_ % kTimes == 0) paths_.Sweep();
  std::erase_if(forgettable_, [&](uint32_t pid) {
    const auto life = lives_.find(pid);
    if (life == lives_.end()) return true;
    auto& generations = life->second.generations;
    while (!generations.empty() && generations.front().end_ns < before_ns) {
      by_id_.erase(generations.front().id);
      generations.pop_front();
    }
    for (Generation& generation : generations) {
      std::erase_if(generation.changes, [=](const Change& change) {
        return change.time_ns < before_ns;
      });
    }
    if (generations.empty()) {
      lives_.erase(life);
      return true;
    }
    return generations.size() == 1 && generations.front().changes.empty() &&
           generations.front().end_ns == kNever;
  });
}

}  // namespace ksym
