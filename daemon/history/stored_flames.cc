// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/stored_flames.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "daemon/history/limits.h"
#include "daemon/history/one_kind.h"
#include "daemon/history/part_counts.h"
#include "daemon/history/selection.h"
#include "daemon/history/table_check.h"
#include "daemon/history/words.h"

namespace profd::history {
namespace {

static_assert(kMaxFlames == kMaxSampleKinds + 1);

// Makes the flames of a file.
class FlameMaker {
 public:
  explicit FlameMaker(Tables& tables) : tables_(tables), filter_(tables, {}) {}

  std::optional<StoredFlames> Make() && {
    // One without a name cannot be asked for, and OneKind takes another unit
    // for that of one without.
    const auto is_named = [](const Kind& kind) {
      return kind.name != 0 && kind.unit != 0;
    };
    if (!std::ranges::all_of(tables_.kinds, is_named)) return std::nullopt;
    AddNone();
    for (uint32_t kind = 0; kind < tables_.kinds.size(); ++kind) {
      if (!IsFirst(kind)) continue;
      const Kind& named = tables_.kinds[kind];
      OneKind wanted(std::string(tables_.strings.Get(named.name)),
                     std::string(tables_.strings.Get(named.unit)));
      if (made_.flames.size() == kMaxFlames ||
          !AddFlame({.kind = kind, .value_of_sample = ValueOfSample(kind)},
                    wanted)) {
        return std::nullopt;
      }
    }
    // Sums of counters may be too large for their numbers.
    if (!CheckFlames(made_, tables_)) return std::nullopt;
    return std::move(made_);
  }

 private:
  static bool AreAlike(const Kind& a, const Kind& b) {
    return a.name == b.name && a.unit == b.unit;
  }

  bool IsFirst(uint32_t kind) const {
    return std::ranges::none_of(std::span(tables_.kinds).first(kind),
                                [&](const Kind& other) {
                                  return AreAlike(other, tables_.kinds[kind]);
                                });
  }

  uint64_t ValueOfSample(uint32_t first) const {
    uint64_t least = std::numeric_limits<uint64_t>::max();
    for (const Kind& kind : tables_.kinds) {
      if (!AreAlike(kind, tables_.kinds[first])) continue;
      least = std::min(least, ValueOf(SampleKindOf(tables_, kind), 1, 0));
    }
    return least;
  }

  void AddNone() {
    PartCounts counts(tables_);
    for (const Row& row : tables_.rows) counts.LeaveOut(row);
    made_.flames.push_back({.first_node = 1, .counters = AddCounters(counts)});
  }

  // False: it has no room.
  bool AddFlame(StoredFlame flame, OneKind& kind) {
    kind.Enter(tables_, filter_);
    FileFlame stacks(tables_, kStoredFlameNodes, room_);
    PartCounts counts(tables_);
    for (const Row& row : tables_.rows) {
      const Series& series = tables_.series[row.series];
      if (kind.Has(series)) {
        counts.Take(row);
        stacks.Add(row, kind.ValueOfRow(series, row));
      } else {
        counts.LeaveOut(row);
      }
    }
    const size_t nodes_before = made_.nodes.size();
    bool fits = true;
    size_t trees = 0;
    const auto done = stacks.Finish([&](std::span<const FlameNode> nodes) {
      fits = ++trees == 1 && AddNodes(nodes, flame.value_of_sample);
      return ksym::Status();
    });
    if (!done || !fits) return false;
    flame.rare_up_to = stacks.rare_up_to();
    flame.first_node = static_cast<uint32_t>(nodes_before);
    flame.nodes = static_cast<uint32_t>(made_.nodes.size() - nodes_before);
    flame.first_root = static_cast<uint32_t>(made_.roots.size());
    flame.roots = static_cast<uint32_t>(stacks.roots().all().size());
    for (const FlameRoot& root : stacks.roots().all()) {
      made_.roots.push_back(
          {.comm = root.comm,
           .user_state = static_cast<uint32_t>(root.user_state),
           .kernel_state = static_cast<uint32_t>(root.kernel_state),
           .parked = root.parked ? 1u : 0u});
    }
    if (made_.roots.size() > kMaxFlameRoots) return false;
    flame.first_counter = static_cast<uint32_t>(made_.counters.size());
    flame.counters = AddCounters(counts);
    made_.flames.push_back(flame);
    return true;
  }

  bool AddNodes(std::span<const FlameNode> nodes, uint64_t value_of_sample) {
    const auto first = static_cast<uint32_t>(made_.nodes.size() - 1);
    if (first + nodes.size() > kMaxFlameNodes ||
        first + nodes.size() > MostNodes()) {
      return false;
    }
    for (const FlameNode& node : nodes.subspan(1)) {
      uint64_t least = 0;
      if (__builtin_mul_overflow(node.count, value_of_sample, &least) ||
          least > node.value) {
        return false;
      }
      StoredNode stored = {.is_kernel = node.is_kernel,
                           .count = node.count,
                           .more = node.value - least};
      if (node.parent != 0) {
        stored.parent = first + node.parent;
        stored.frame = node.frame == kRareFrame ? 0 : node.frame + 1;
      }
      made_.nodes.push_back(stored);
    }
    return true;
  }

  // More would save little.
  size_t MostNodes() const {
    return (tables_.nodes.size() + tables_.rows.size()) / 2;
  }

  uint32_t AddCounters(const PartCounts& counts) {
    Accounting sum;
    for (uint32_t part = 0; part < tables_.parts.size(); ++part) {
      sum += counts.Of(part);
    }
    const auto counters = CountersOf(sum);
    for (const auto& [name, value] : counters) {
      const size_t before = tables_.strings.size();
      made_.counters.push_back(
          {.name = tables_.strings.Intern(name), .value = value});
      if (tables_.strings.size() != before) tables_.text_bytes += name.size();
    }
    return static_cast<uint32_t>(counters.size());
  }

  Tables& tables_;
  const FileFilter filter_;
  FileFlame::Room room_;
  StoredFlames made_;
};

}  // namespace

std::optional<StoredFlames> FlamesOf(Tables& tables) {
  // Roots are numbered in the order of rows, which is that of a file.
  if (!std::ranges::is_sorted(tables.rows, RowOrder)) {
    std::ranges::sort(tables.rows, RowOrder);
  }
  return FlameMaker(tables).Make();
}

const StoredFlame& FindFlame(const StoredFlames& flames, const Tables& tables,
                             std::string_view kind, std::string_view unit) {
  for (const StoredFlame& flame : std::span(flames.flames).subspan(1)) {
    const Kind& named = tables.kinds[flame.kind];
    if (tables.strings.Get(named.name) == kind &&
        tables.strings.Get(named.unit) == unit) {
      return flame;
    }
  }
  return flames.flames.front();
}

std::vector<FlameNode> NodesOf(const StoredFlames& flames,
                               const StoredFlame& flame) {
  std::vector<FlameNode> nodes(1);
  nodes.reserve(flame.nodes + 1);
  uint32_t root = 0;
  for (const StoredNode& node :
       std::span(flames.nodes).subspan(flame.first_node, flame.nodes)) {
    const bool is_root = node.parent == 0;
    const uint32_t frame = is_root           ? root++
                           : node.frame == 0 ? kRareFrame
                                             : node.frame - 1;
    nodes.push_back(
        {.parent = is_root ? 0 : node.parent - (flame.first_node - 1),
         .is_kernel = node.is_kernel & 1,
         .frame = frame & kAllFrames,
         .count = node.count,
         .value = node.count * flame.value_of_sample + node.more});
  }
  return nodes;
}

std::vector<FlameRoot> RootsOf(const StoredFlames& flames,
                               const StoredFlame& flame) {
  std::vector<FlameRoot> roots;
  roots.reserve(flame.roots);
  for (const StoredRoot& root :
       std::span(flames.roots).subspan(flame.first_root, flame.roots)) {
    roots.push_back({.comm = root.comm,
                     .user_state = static_cast<StackState>(root.user_state),
                     .kernel_state = static_cast<StackState>(root.kernel_state),
                     .parked = root.parked != 0});
  }
  return roots;
}

Accounting AccountingOf(const StoredFlames& flames, const StoredFlame& flame,
                        const Tables& tables) {
  Accounting accounting;
  const std::vector<uint64_t*> numbers = CountersIn(accounting);
  for (const Counter& counter :
       std::span(flames.counters)
           .subspan(flame.first_counter, flame.counters)) {
    if (const auto number = FindCounter(tables.strings.Get(counter.name))) {
      *numbers[*number] = counter.value;
    }
  }
  return accounting;
}

}  // namespace profd::history
