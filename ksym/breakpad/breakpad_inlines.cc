// SPDX-License-Identifier: Apache-2.0
#include "ksym/breakpad/breakpad_inlines.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace ksym {
namespace {

// Sorts, and joins ranges that touch.
void Normalize(std::vector<AddressRange>& ranges) {
  std::ranges::sort(ranges, {}, &AddressRange::start);
  size_t kept = 0;
  for (const AddressRange& range : ranges) {
    if (kept > 0 && range.start <= ranges[kept - 1].end) {
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

class TreeBuilder {
 public:
  TreeBuilder(std::span<BreakpadInline> inlines, FunctionBatch& batch)
      : inlines_(inlines), batch_(batch), children_(inlines.size()) {}

  size_t Run() {
    for (BreakpadInline& call : inlines_) Normalize(call.ranges);
    SortByStart();
    IndexRanges();
    size_t lost = 0;
    for (const size_t i : order_) {
      if (inlines_[i].level == 0) {
        roots_.push_back(i);
      } else if (const BreakpadInline* parent = FindParent(i)) {
        children_[static_cast<size_t>(parent - inlines_.data())].push_back(i);
      } else {
        ++lost;
      }
    }
    const size_t appended = Append();
    // Those within lost ones are lost too.
    return std::max(lost, inlines_.size() - appended);
  }

 private:
  struct Place {
    AddressRange range;
    size_t index = 0;
  };

  // Siblings are in the order of their code.
  void SortByStart() {
    order_.resize(inlines_.size());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::ranges::stable_sort(
        order_, {}, [&](size_t i) { return inlines_[i].ranges.front().start; });
  }

  void IndexRanges() {
    for (size_t i = 0; i < inlines_.size(); ++i) {
      for (const AddressRange& range : inlines_[i].ranges) {
        levels_[inlines_[i].level].push_back({range, i});
      }
    }
    for (auto& [level, places] : levels_) {
      std::ranges::sort(places, {},
                        [](const Place& place) { return place.range.start; });
    }
  }

  const BreakpadInline* FindParent(size_t index) const {
    const auto level = levels_.find(inlines_[index].level - 1);
    if (level == levels_.end()) return nullptr;
    const uint64_t start = inlines_[index].ranges.front().start;
    const auto next = std::ranges::upper_bound(
        level->second, start, {},
        [](const Place& place) { return place.range.start; });
    if (next == level->second.begin()) return nullptr;
    const Place& place = *(next - 1);
    return place.range.Contains(start) ? &inlines_[place.index] : nullptr;
  }

  // Without recursion: levels may be many. Returns how many there were.
  size_t Append() {
    std::vector<size_t> open(roots_.rbegin(), roots_.rend());
    size_t count = 0;
    while (!open.empty()) {
      const size_t index = open.back();
      open.pop_back();
      const BreakpadInline& call = inlines_[index];
      batch_.inlines.push_back(
          {.name = call.name,
           .depth = static_cast<uint32_t>(call.level + 1),
           .call_file = call.call_file,
           .call_line = call.call_line,
           .first_range = static_cast<uint32_t>(batch_.ranges.size()),
           .range_count = static_cast<uint32_t>(call.ranges.size())});
      batch_.ranges.insert(batch_.ranges.end(), call.ranges.begin(),
                           call.ranges.end());
      ++count;
      const auto& children = children_[index];
      open.insert(open.end(), children.rbegin(), children.rend());
    }
    return count;
  }

  std::span<BreakpadInline> inlines_;
  FunctionBatch& batch_;
  std::vector<size_t> order_;
  std::map<uint64_t, std::vector<Place>> levels_;
  std::vector<size_t> roots_;
  std::vector<std::vector<size_t>> children_;
};

}  // namespace

size_t AppendBreakpadInlines(std::span<BreakpadInline> inlines,
                             FunctionBatch& batch) {
  if (inlines.empty()) return 0;
  return TreeBuilder(inlines, batch).Run();
}

}  // namespace ksym
