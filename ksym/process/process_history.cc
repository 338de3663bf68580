#include "ksym/process/process_history.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ksym {
namespace {

// The part of a mapping from `start` on; its file offset moves along.
Mapping TailFrom(const Mapping& mapping, Address start) {
  Mapping tail = mapping;
  if (mapping.inode != 0) {
    tail.file_offset = mapping.file_offset + (start - mapping.start);
  }
  tail.start = start;
  return tail;
}

// The mappings that have a byte in common with [start, end).
template <typename Mappings>
auto Overlapping(Mappings& mappings, Address start, Address end) {
  const auto first =
      std::ranges::upper_bound(mappings, start, {}, &Mapping::end);
  const auto last =
      std::ranges::lower_bound(first, mappings.end(), end, {}, &Mapping::start);
  return std::ranges::subrange(first, last);
}

}  // namespace

void InsertMapping(std::vector<Mapping>& mappings, Mapping mapping) {
  if (mapping.start >= mapping.end) return;
  const auto [first, last] = Overlapping(mappings, mapping.start, mapping.end);
  std::vector<Mapping> replacement;
  if (first != last && first->start < mapping.start) {
    replacement.push_back(*first);
    replacement.back().end = mapping.start;
  }
  const Address end = mapping.end;
  replacement.push_back(std::move(mapping));
  if (first != last && std::prev(last)->end > end) {
    replacement.push_back(TailFrom(*std::prev(last), end));
  }
  const auto at = mappings.erase(first, last);
  mappings.insert(at, std::make_move_iterator(replacement.begin()),
                  std::make_move_iterator(replacement.end()));
}

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
                         .mappings = std::move(mappings),
                         .changes = {}});
  by_id_.emplace(generations.back().id, pid);
  return &generations.back();
}

ProcessHistory::Generation* ProcessHistory::Present(uint32_t pid,
                                                    uint64_t time_ns) {
  const auto life = lives_.find(pid);
  if (life == lives_.end()) return nullptr;
  Generation& last = life->second.generations.back();
  return last.end_ns > time_ns ? &last : nullptr;
}

ProcessHistory::MappingList& ProcessHistory::Own(Generation& generation) {
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
  if (changes.size() >= limits_.changes) {
    changes.clear();
    changes.push_back({.time_ns = change.time_ns,
                       .start = Address{0},
                       .end = Address{std::numeric_limits<uint64_t>::max()}});
    return;
  }
  changes.push_back(change);
}

void ProcessHistory::Put(Generation& generation, Mapping mapping,
                         uint64_t time_ns, size_t limit) {
  if (generation.mappings == nullptr) return;
  const MappingList& known = *generation.mappings;
  limit = std::max(limit, known.size());
  const auto covered = Overlapping(known, mapping.start, mapping.end);
  if (covered.empty() && known.size() == limit) {
    ++statistics_.mappings_dropped;
    return;
  }
  for (const Mapping& old : covered) {
    if (HaveSameBytes(old, mapping)) continue;
    AddChange(generation, {.time_ns = time_ns,
                           .start = std::max(old.start, mapping.start),
                           .end = std::min(old.end, mapping.end)});
  }
  MappingList& own = Own(generation);
  const Address start = mapping.start;
  InsertMapping(own, std::move(mapping));
  if (own.size() <= limit) return;
  // What was there is gone all the same. Of one that it cut in two the second
  // part goes, too.
  ++statistics_.mappings_dropped;
  const auto at = std::ranges::lower_bound(own, start, {}, &Mapping::start);
  own.erase(at, at + static_cast<std::ptrdiff_t>(own.size() - limit));
}

// The generation that a reading of that time tells of, with mappings.
ProcessHistory::Generation* ProcessHistory::Seeded(Reading& reading,
                                                   uint64_t time_ns) {
  Generation* present = Present(reading.pid, time_ns);
  if (present != nullptr && present->mappings != nullptr) return present;
  if (present != nullptr && present->awaits_reading) {
    if (lives_[reading.pid].generations.size() == 1) {
      present->begin_ns = std::min(present->begin_ns, reading.since_ns);
    }
    present->awaits_reading = false;
    present->mappings = std::make_shared<MappingList>();
  } else {
    const bool is_first = !lives_.contains(reading.pid);
    present = Begin(reading.pid, is_first ? reading.since_ns : time_ns,
                    std::make_shared<MappingList>());
  }
  if (present != nullptr) {
    Life& life = lives_[reading.pid];
    life.threads = std::move(reading.threads);
    life.knows_threads = true;
  }
  return present;
}

void ProcessHistory::Seed(Reading reading, uint64_t time_ns) {
  Generation* generation = Seeded(reading, time_ns);
  if (generation == nullptr) return;
  for (Mapping& mapping : reading.mappings) {
    Put(*generation, std::move(mapping), time_ns, limits_.read_mappings);
  }
}

void ProcessHistory::LoseTrack(uint64_t time_ns) {
  for (auto& [pid, life] : lives_) {
    const Generation& last = life.generations.back();
    if (last.end_ns <= time_ns && last.mappings == nullptr) continue;
    Begin(pid, time_ns, nullptr);
    // It may have ended since, or be another one's number.
    End(life, time_ns);
    life.threads.clear();
    life.knows_threads = false;
  }
}

void ProcessHistory::Fork(uint32_t parent, uint32_t child, uint64_t time_ns) {
  std::shared_ptr<MappingList> mappings;
  const Generation* from = Present(parent, time_ns);
  if (from != nullptr) mappings = from->mappings;
  Generation* generation = Begin(child, time_ns, std::move(mappings));
  if (generation == nullptr) return;
  // Of an unknown parent the child is unknown, too.
  generation->awaits_reading = generation->mappings == nullptr;
  Life& own = lives_[child];
  own.threads = {child};
  own.knows_threads = true;
}

void ProcessHistory::StartThread(uint32_t pid, uint32_t thread) {
  const auto life = lives_.find(pid);
  if (life != lives_.end()) life->second.threads.insert(thread);
}

void ProcessHistory::Exec(uint32_t pid, uint64_t time_ns) {
  const auto mappings = std::make_shared<MappingList>();
  // The other threads have ended.
  const bool was_there = Present(pid, time_ns) != nullptr;
  Generation* generation = Begin(pid, time_ns, mappings);
  if (generation == nullptr) return;
  generation->by_exec = was_there;
  Life& life = lives_[pid];
  life.threads = {pid};
  life.knows_threads = true;
}

void ProcessHistory::Map(uint32_t pid, Mapping mapping, uint64_t time_ns) {
  Generation* generation = Present(pid, time_ns);
  if (generation == nullptr) {
    // Its fork was not reported: it was there before, or the report was lost.
    generation = Begin(pid, time_ns, nullptr);
    if (generation == nullptr) return;
    generation->awaits_reading = true;
    lives_[pid].knows_threads = false;
  }
  if (generation->mappings == nullptr) {
    // One mapping of many would not tell which program it is. What was here
    // before is not known.
    AddChange(*generation, {time_ns, mapping.start, mapping.end});
    return;
  }
  Put(*generation, std::move(mapping), time_ns, limits_.mappings);
}

void ProcessHistory::EndThread(uint32_t pid, uint32_t thread,
                               uint64_t time_ns) {
  const auto life = lives_.find(pid);
  if (life == lives_.end()) return;
  life->second.threads.erase(thread);
  if (!life->second.knows_threads || !life->second.threads.empty()) return;
  End(life->second, time_ns);
}

void ProcessHistory::End(Life& life, uint64_t time_ns) {
  Generation& last = life.generations.back();
  last.end_ns = std::min(last.end_ns, time_ns);
  forgettable_.insert(last.pid);
}

bool ProcessHistory::AwaitsReading(uint32_t pid) const {
  const auto life = lives_.find(pid);
  if (life == lives_.end()) return false;
  const Generation& last = life->second.generations.back();
  return last.awaits_reading && last.end_ns == kNever;
}

void ProcessHistory::GiveUp(uint32_t pid, uint64_t time_ns) {
  if (AwaitsReading(pid)) End(lives_.at(pid), time_ns);
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

ProcessHistory::GenerationId ProcessHistory::FindOnly(uint32_t pid,
                                                      uint64_t begin_ns,
                                                      uint64_t end_ns) const {
  const auto id = Find(pid, end_ns);
  if (id == 0) return 0;
  const Generation* generation = Get(id);
  // What began within the time stands alone only if it is the first.
  const bool is_only = generation->begin_ns <= begin_ns || Previous(id) == 0;
  return is_only ? id : 0;
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

const std::vector<Mapping>* ProcessHistory::Mappings(GenerationId id) const {
  const Generation* generation = Get(id);
  return generation == nullptr ? nullptr : generation->mappings.get();
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
