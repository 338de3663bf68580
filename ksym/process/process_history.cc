// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/process_history.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ksym {
namespace {

// A reading that brings more puts them into the list all at once.
constexpr size_t kMaxPuts = 64;

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
  const std::vector<Mapping>& known = generation.mappings->get();
  limit = std::max(limit, known.size());
  const auto covered = Overlapping(known, mapping.start, mapping.end);
  const auto is_too_large = [](const Mapping& old) {
    return old.path == kTooLargePath;
  };
  if (known.size() >= limit && std::ranges::all_of(covered, is_too_large)) {
    PutTooLarge(generation, std::move(mapping));
    return;
  }
  SharePath(generation, mapping);
  for (const Mapping& old : covered) {
    if (HaveSameBytes(old, mapping)) continue;
    AddChange(generation, {.time_ns = time_ns,
                           .start = std::max(old.start, mapping.start),
                           .end = std::min(old.end, mapping.end)});
  }
  Own(generation).Change([&](std::vector<Mapping>& own) {
    const Address start = mapping.start;
    InsertMapping(own, std::move(mapping));
    if (own.size() <= limit) return;
    // What was there is gone all the same. A mapping cut in two loses its
    // second part, too.
    ++statistics_.mappings_dropped;
    const auto at = std::ranges::lower_bound(own, start, {}, &Mapping::start);
    own.erase(at, at + static_cast<std::ptrdiff_t>(own.size() - limit));
  });
  if (*all_mappings_ > limits_.all_mappings) GiveUpLongestList();
}

// What has no room in the list, and covers none of it: in each gap between two
// that are there one mapping says that there is something. So there are never
// more of them than of others.
void ProcessHistory::PutTooLarge(Generation& generation, Mapping mapping) {
  ++statistics_.mappings_dropped;
  ForgetFile(mapping);
  Own(generation).Change([&](std::vector<Mapping>& own) {
    auto [first, last] = Overlapping(own, mapping.start, mapping.end);
    if (first != own.begin() && std::prev(first)->path == kTooLargePath) {
      --first;
    }
    if (last != own.end() && last->path == kTooLargePath) ++last;
    if (first != last) {
      mapping.start = std::min(mapping.start, first->start);
      mapping.end = std::max(mapping.end, std::prev(last)->end);
    }
    own.insert(own.erase(first, last), std::move(mapping));
  });
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
  list->Change([&](std::vector<Mapping>& own) { own.push_back(all); });
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
  Own(generation).Change([&](std::vector<Mapping>& own) {
    own = std::move(all);
  });
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
