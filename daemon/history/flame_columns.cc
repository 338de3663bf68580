// SPDX-License-Identifier: Apache-2.0
// Stored flames as bytes, and what is checked of those that come from anyone.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "daemon/history/column_reader.h"
#include "daemon/history/column_writer.h"
#include "daemon/history/joined_columns.h"
#include "daemon/history/limits.h"
#include "daemon/history/stored_flames.h"
#include "daemon/history/words.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

constexpr std::tuple kFlameFields = {Field{&StoredFlame::kind},
                                     Field{&StoredFlame::rare_up_to},
                                     Field{&StoredFlame::value_of_sample},
                                     Field{&StoredFlame::roots},
                                     Field{&StoredFlame::nodes},
                                     Field{&StoredFlame::counters}};
constexpr std::tuple kFlameRootFields = {
    Field{&StoredRoot::comm}, Field{&StoredRoot::user_state},
    Field{&StoredRoot::kernel_state}, Field{&StoredRoot::parked}};
constexpr std::tuple kFlameNodeFields = {
    Field{&StoredNode::parent, Code::kDistance}, Field{&StoredNode::frame},
    Field{&StoredNode::is_kernel}, Field{&StoredNode::count},
    Field{&StoredNode::more}};
constexpr size_t kFlameColumns = std::tuple_size_v<decltype(kFlameFields)> +
                                 std::tuple_size_v<decltype(kFlameRootFields)> +
                                 std::tuple_size_v<decltype(kFlameNodeFields)> +
                                 std::tuple_size_v<decltype(kCounterFields)>;

// Goes through a flame's nodes.
class FlameChecker {
 public:
  FlameChecker(const StoredFlames& flames, const Tables& tables)
      : flames_(flames), tables_(tables), depths_(flames.nodes.size()) {}

  Status Check(const StoredFlame& flame) {
    uint32_t roots = 0;
    uint64_t count = 0;
    for (uint32_t i = 0; i < flame.nodes; ++i) {
      const uint32_t place = flame.first_node + i;
      const StoredNode& node = flames_.nodes[place];
      if (node.parent == 0 ? !IsRoot(node, roots++, flame)
                           : !IsBelow(node, place, flame)) {
        return Fail(ErrorCode::kCorrupt, "a node of a flame is in no tree");
      }
      uint64_t value = 0;
      if (__builtin_add_overflow(count, node.count, &count) ||
          __builtin_mul_overflow(node.count, flame.value_of_sample, &value) ||
          __builtin_add_overflow(value, node.more, &value)) {
        return Fail(ErrorCode::kCorrupt, "counts are too large");
      }
    }
    if (roots != flame.roots) {
      return Fail(ErrorCode::kCorrupt, "a flame has other roots than it says");
    }
    const Accounting all = AccountingOf(flames_, flame, tables_);
    if (count > all.emitted || count > all.taken) {
      return Fail(ErrorCode::kCorrupt, "has more samples than were taken");
    }
    return {};
  }

 private:
  static bool IsRoot(const StoredNode& node, uint32_t roots,
                     const StoredFlame& flame) {
    return roots < flame.roots && node.frame == 0 && node.is_kernel == 0;
  }

  // Callers come before their callees, and nothing of the user's is called by
  // the kernel.
  bool IsBelow(const StoredNode& node, uint32_t place,
               const StoredFlame& flame) {
    if (node.parent < flame.first_node || node.parent >= place) return false;
    depths_[place] = static_cast<uint16_t>(depths_[node.parent] + 1);
    return depths_[place] <= 2 * kMaxStackDepth + 1 &&
           node.frame <= tables_.functions.size() &&
           flames_.nodes[node.parent].is_kernel <= node.is_kernel;
  }

  const StoredFlames& flames_;
  const Tables& tables_;
  std::vector<uint16_t> depths_;  // by node
};

void CheckPlaces(const Tables& tables, StoredFlames& flames,
                 ColumnReader& reader) {
  const std::span all(flames.flames);
  reader.Check(
      !all.empty() &&
          PlaceLists(all, &StoredFlame::first_root, &StoredFlame::roots,
                     {.there = 0, .added = flames.roots.size()}) &&
          PlaceLists(all, &StoredFlame::first_node, &StoredFlame::nodes,
                     {.there = 1, .added = flames.nodes.size() - 1}) &&
          PlaceLists(all, &StoredFlame::first_counter, &StoredFlame::counters,
                     {.there = 0, .added = flames.counters.size()}),
      "roots, nodes or counters belong to no flame");
  if (!reader.status()) return;
  const auto knows = [&](const Counter& counter) {
    return counter.name < tables.strings.size() &&
           FindCounter(tables.strings.Get(counter.name));
  };
  reader.Check(
      all.front().nodes == 0 &&
          AllBelow(all.subspan(1), tables.kinds.size(), &StoredFlame::kind),
      "a flame's kind is not there");
  constexpr size_t kStates = static_cast<size_t>(StackState::kBeyondCopy) + 1;
  const std::span roots(flames.roots);
  reader.Check(
      AllBelow(roots, tables.strings.size(), &StoredRoot::comm) &&
          AllBelow(roots, kStates, &StoredRoot::user_state,
                   &StoredRoot::kernel_state) &&
          AllBelow(roots, 2, &StoredRoot::parked) &&
          AllBelow(std::span(flames.nodes), 2, &StoredNode::is_kernel) &&
          std::ranges::all_of(flames.counters, knows),
      "a flame's root or counter is none");
}

}  // namespace

std::string EncodeFlames(const StoredFlames& flames) {
  std::array<std::string, kFlameColumns> columns;
  ColumnWriter writer(columns);
  writer.Add(flames.flames, 0, kFlameFields);
  writer.Add(flames.roots, 0, kFlameRootFields);
  writer.Add(flames.nodes, 1, kFlameNodeFields);
  writer.Add(flames.counters, 0, kCounterFields);
  return JoinColumns(columns);
}

Result<StoredFlames> DecodeFlames(std::string_view bytes,
                                  const Tables& tables) {
  std::array<std::string_view, kFlameColumns> views;
  if (auto split = SplitColumns(bytes, views); !split) {
    return Fail(std::move(split.error()));
  }
  StoredFlames flames;
  ColumnReader reader(views, Content::kAll);
  reader.Read(flames.flames, kMaxFlames, kFlameFields);
  reader.Read(flames.roots, kMaxFlameRoots, kFlameRootFields);
  reader.Read(flames.nodes, kMaxFlameNodes, kFlameNodeFields);
  reader.Read(flames.counters, kMaxFlames * kMaxCountersOfPart, kCounterFields);
  if (reader.status()) CheckPlaces(tables, flames, reader);
  if (!reader.status()) return Fail(reader.status().error());
  if (auto right = CheckFlames(flames, tables); !right) {
    return Fail(std::move(right.error()));
  }
  return flames;
}

Status CheckFlames(const StoredFlames& flames, const Tables& tables) {
  FlameChecker checker(flames, tables);
  for (const StoredFlame& flame : flames.flames) {
    if (auto right = checker.Check(flame); !right) return right;
  }
  return {};
}

}  // namespace profd::history
