// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/mapping_list.h"

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
auto FindOverlapping(Mappings& mappings, Address start, Address end) {
  const auto first =
      std::ranges::upper_bound(mappings, start, {}, &Mapping::end);
  const auto last =
      std::ranges::lower_bound(first, mappings.end(), end, {}, &Mapping::start);
  return std::ranges::subrange(first, last);
}

// Keeps the sum right while a list changes.
class Recount {
 public:
  Recount(size_t& all, const std::vector<Mapping>& mappings)
      : all_(all), mappings_(mappings) {
    all_ -= mappings_.size();
  }
  Recount(const Recount&) = delete;
  Recount& operator=(const Recount&) = delete;
  ~Recount() { all_ += mappings_.size(); }

 private:
  size_t& all_;
  const std::vector<Mapping>& mappings_;
};

}  // namespace

void InsertMapping(std::vector<Mapping>& mappings, Mapping mapping) {
  if (mapping.start >= mapping.end) return;
  const auto [first, last] =
      FindOverlapping(mappings, mapping.start, mapping.end);
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

std::span<const Mapping> MappingList::Overlapping(Address start,
                                                  Address end) const {
  return std::span(FindOverlapping(mappings_, start, end));
}

bool MappingList::Insert(Mapping mapping, size_t max) {
  const Recount recount(*all_, mappings_);
  const Address start = mapping.start;
  InsertMapping(mappings_, std::move(mapping));
  if (mappings_.size() <= max) return true;
  // Only after the insertion: what was there is gone all the same. A mapping
  // cut in two loses its second part, too.
  const auto at =
      std::ranges::lower_bound(mappings_, start, {}, &Mapping::start);
  mappings_.erase(at, at + static_cast<std::ptrdiff_t>(mappings_.size() - max));
  return false;
}

void MappingList::InsertTooLarge(Mapping mapping) {
  const Recount recount(*all_, mappings_);
  ForgetFile(mapping);
  auto [first, last] = FindOverlapping(mappings_, mapping.start, mapping.end);
  // The ones beside it too, so that there are never more of them than of
  // others.
  if (first != mappings_.begin() && std::prev(first)->path == kTooLargePath) {
    --first;
  }
  if (last != mappings_.end() && last->path == kTooLargePath) ++last;
  if (first != last) {
    mapping.start = std::min(mapping.start, first->start);
    mapping.end = std::max(mapping.end, std::prev(last)->end);
  }
  mappings_.insert(mappings_.erase(first, last), std::move(mapping));
}

void MappingList::Assign(std::vector<Mapping> mappings) {
  const Recount recount(*all_, mappings_);
  mappings_ = std::move(mappings);
}

}  // namespace ksym
