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

}  // namespace

void InsertMapping(std::vector<Mapping>& mappings, Mapping mapping) {
  if (mapping.start >= mapping.end) return;
  auto first =
      std::ranges::upper_bound(mappings, mapping.start, {}, &Mapping::end);
  auto last = std::ranges::lower_bound(first, mappings.end(), mapping.end, {},
                                       &Mapping::start);
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

ProcessHistory::Generation& ProcessHistory::Begin(
    uint32_t pid, uint64_t time_ns, std::shared_ptr<MappingList> mappings) {
  auto& generations = lives_[pid].generations;
  if (!generations.empty()) {
    Generation& last = generations.back();
    last.end_ns = std::min(last.end_ns, time_ns);
  }
  generations.push_back(
      {.id = next_id_++, .begin_ns = time_ns, .mappings = std::move(mappings)});
  by_id_.emplace(generations.back().id, pid);
  return generations.back();
}

ProcessHistory::Generation& ProcessHistory::Present(uint32_t pid,
                                                    uint64_t time_ns) {
  const auto life = lives_.find(pid);
  if (life != lives_.end() &&
      life->second.generations.back().end_ns > time_ns) {
    return life->second.generations.back();
  }
  // Its fork was not reported: it was there before, or the report was lost.
  return Begin(pid, time_ns, nullptr);
}

ProcessHistory::MappingList& ProcessHistory::Own(Generation& generation) {
  if (generation.mappings.use_count() > 1) {
    generation.mappings = std::make_shared<MappingList>(*generation.mappings);
  }
  ++generation.version;
  return *generation.mappings;
}

void ProcessHistory::Seed(Reading reading, uint64_t time_ns) {
  const auto life = lives_.find(reading.pid);
  if (life == lives_.end()) {
    Begin(reading.pid, reading.since_ns, std::make_shared<MappingList>());
    lives_[reading.pid].threads = reading.threads;
  } else if (life->second.generations.back().mappings == nullptr) {
    Begin(reading.pid, time_ns, std::make_shared<MappingList>());
    life->second.threads = reading.threads;
  }
  MappingList& known = Own(Present(reading.pid, time_ns));
  for (Mapping& mapping : reading.mappings) {
    InsertMapping(known, std::move(mapping));
  }
}

void ProcessHistory::LoseTrack(uint64_t time_ns) {
  for (auto& [pid, life] : lives_) {
    if (life.generations.back().end_ns <= time_ns) continue;
    Begin(pid, time_ns, nullptr);
  }
}

void ProcessHistory::Fork(uint32_t parent, uint32_t child, uint64_t time_ns) {
  const auto life = lives_.find(parent);
  if (parent == child) {
    if (life != lives_.end()) ++life->second.threads;
    return;
  }
  // Of an unknown parent the child is unknown, too, until it execs.
  std::shared_ptr<MappingList> mappings;
  if (life != lives_.end()) {
    mappings = life->second.generations.back().mappings;
  }
  Begin(child, time_ns, std::move(mappings));
  lives_[child].threads = 1;
}

void ProcessHistory::Exec(uint32_t pid, uint64_t time_ns) {
  Begin(pid, time_ns, std::make_shared<MappingList>());
}

void ProcessHistory::Map(uint32_t pid, Mapping mapping, uint64_t time_ns) {
  Generation& generation = Present(pid, time_ns);
  // One mapping of many would not tell which program it is.
  if (generation.mappings == nullptr) return;
  InsertMapping(Own(generation), std::move(mapping));
}

void ProcessHistory::Exit(uint32_t pid, uint64_t time_ns) {
  const auto life = lives_.find(pid);
  if (life == lives_.end()) return;
  if (life->second.threads > 1) {
    --life->second.threads;
    return;
  }
  Generation& last = life->second.generations.back();
  last.end_ns = std::min(last.end_ns, time_ns);
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

void ProcessHistory::Forget(uint64_t before_ns) {
  for (auto life = lives_.begin(); life != lives_.end();) {
    auto& generations = life->second.generations;
    while (!generations.empty() && generations.front().end_ns < before_ns) {
      by_id_.erase(generations.front().id);
      generations.pop_front();
    }
    life = generations.empty() ? lives_.erase(life) : std::next(life);
  }
}

}  // namespace ksym
