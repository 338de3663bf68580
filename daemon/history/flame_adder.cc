// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/flame_adder.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/base/bounded_sum.h"
#include "daemon/history/capture_facts.h"
#include "daemon/history/limits.h"
#include "daemon/history/part_counts.h"
#include "daemon/history/rare_callees.h"
#include "daemon/history/table_check.h"
#include "daemon/history/words.h"
#include "ksym/base/number_hash.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Status;

// Nodes of one file that a tree takes for each of those that it is to have in
// the end. So many that what is left out of all files stays below what the end
// leaves out, and few enough that adding a file takes no more than twice the
// time of reading it.
constexpr size_t kFileNodesOfEach = 2;

}  // namespace

// Puts the wanted samples of one file into the tree.
class FlameAdder::File {
 public:
  File(const Tables& tables, FlameAdder& adder)
      : tables_(tables),
        adder_(adder),
        filter_(tables, adder.selection_),
        strings_(tables.strings.size()),
        frames_(tables.functions.size()),
        mark_(tables) {}

  Status Add() {
    if (auto right = CheckTables(tables_); !right) return right;
    adder_.kind_.Enter(tables_, filter_);
    PartCounts counts(tables_);
    FileFlame flame(tables_, NodesOfFile(), adder_.flame_room_);
    AddRows(counts, flame);
    auto added = flame.Finish([&](std::span<const FlameNode> nodes) {
      return AddTree(nodes, flame.roots().all());
    });
    if (!added) return added;
    AddUpTo64Bits(adder_.rare_up_to_,
                  std::max(rare_up_to_, flame.rare_up_to()));
    for (uint32_t i = 0; i < tables_.parts.size(); ++i) {
      if (!filter_.HasPart(i)) continue;
      adder_.builder_.Add(counts.Of(i));
      AddPart(filter_.PartIn(i));
    }
    return {};
  }

  Status Add(const StoredFlames& flames) {
    if (auto right = CheckFunctions(tables_); !right) return right;
    adder_.kind_.Enter(tables_, filter_);
    const StoredFlame& flame =
        FindFlame(flames, tables_, adder_.kind_.name(), adder_.kind_.unit());
    if (auto added = AddTree(NodesOf(flames, flame), RootsOf(flames, flame));
        !added) {
      return added;
    }
    AddUpTo64Bits(adder_.rare_up_to_, std::max(rare_up_to_, flame.rare_up_to));
    adder_.builder_.Add(AccountingOf(flames, flame, tables_));
    for (const Part& part : tables_.parts) AddPart(part);
    return {};
  }

 private:
  size_t NodesOfFile() const {
    return std::max(kStoredFlameNodes, MostNodes());
  }
  size_t MostNodes() const { return kFileNodesOfEach * adder_.bounds_.nodes; }

  void AddRows(PartCounts& counts, FileFlame& flame) {
    for (const Row& row : tables_.rows) {
      if (!filter_.HasPart(row.part)) continue;
      const Series& series = tables_.series[row.series];
      if (!filter_.HasRow(row) || !adder_.kind_.Has(series)) {
        counts.LeaveOut(row);
        continue;
      }
      counts.Take(row);
      flame.Add(row, adder_.kind_.ValueOfRow(series, row));
    }
  }

  Status AddTree(std::span<const FlameNode> nodes,
                 std::span<const FlameRoot> roots) {
    const uint64_t rare = adder_.AddTree(
        nodes, MostNodes(),
        [&](const FlameNode& node) {
          return node.parent == 0 ? RootOf(roots[node.frame]) : FrameOf(node);
        },
        [this](const FlameNode& node) { return IsMark(node); });
    AddUpTo64Bits(rare_up_to_, rare);
    if (adder_.builder_.memory_bytes() <= adder_.bounds_.max_bytes) return {};
    return Fail(ErrorCode::kLimit,
                fmt::format("the functions would take more than {} MiB: ask "
                            "for a shorter time, or for one unit or command",
                            adder_.bounds_.max_bytes >> 20));
  }

  bool IsMark(const FlameNode& node) const {
    return node.frame == kRareFrame || mark_.Is(node.frame);
  }

  FrameId FrameOf(const FlameNode& node) {
    if (node.frame == kRareFrame) return adder_.RareFrame(node.is_kernel != 0);
    return FrameOf(node.frame);
  }

  uint32_t RootOf(FlameRoot root) {
    root.comm = String(root.comm);
    return adder_.RootOf(root);
  }

  StringId String(uint32_t id) {
    auto& known = strings_[id];
    if (!known) known = adder_.builder_.Intern(tables_.strings.Get(id));
    return *known;
  }

  // The function as a flame graph shows it, and nothing else.
  FrameId FrameOf(uint32_t id) {
    auto& known = frames_[id];
    if (known) return *known;
    const Function& function = tables_.functions[id];
    known = adder_.builder_.AddFrame(
        {.name = String(function.name),
         .object = String(function.object),
         .kind = KindOfFunction(tables_, function),
         .reason = FindReason(tables_.strings.Get(function.reason))
                       .value_or(ksym::Unresolved::kNone)});
    return *known;
  }

  void AddPart(const Part& part) {
    if (adder_.coverage_.Add(tables_, part) == CoverageAdder::Step::kFirst) {
      adder_.metadata_.start_unix_ns = part.start_unix_ns;
    }
    AddCaptureFacts(tables_, part, adder_.metadata_);
    const Setting& setting = tables_.settings[part.setting];
    for (uint32_t i = 0; i < setting.kinds; ++i) {
      AddKind(SampleKindOf(tables_, tables_.kinds[setting.first_kind + i]));
    }
  }

  // Samples of several rates are shown as the time that they stood for.
  void AddKind(const SampleKind& kind) {
    if (kind.name != adder_.kind_.name() || kind.unit != adder_.kind_.unit()) {
      return;
    }
    std::optional<SampleKind>& shown = adder_.shown_kind_;
    if (!shown) shown = kind;
    if (*shown == kind) return;
    shown->frequency_hz = std::max(shown->frequency_hz, kind.frequency_hz);
    shown->count_period = 0;
    shown->has_values = true;
  }

  const Tables& tables_;
  FlameAdder& adder_;
  const FileFilter filter_;
  std::vector<std::optional<StringId>> strings_;
  std::vector<std::optional<FrameId>> frames_;
  const RareFunctions mark_;
  uint64_t rare_up_to_ = 0;
};

FlameAdder::FlameAdder(Selection selection, const Bounds& bounds)
    : selection_(std::move(selection)),
      bounds_({.nodes = std::min(bounds.nodes, kMaxNodes),
               .max_bytes = bounds.max_bytes}),
      kind_(selection_.kind) {}

Status FlameAdder::Add(const Tables& tables) {
  return File(tables, *this).Add();
}

Status FlameAdder::AddFlames(const Tables& tables, const StoredFlames& flames) {
  return File(tables, *this).Add(flames);
}

bool FlameAdder::TakesFlames(const Selection& selection, size_t nodes) {
  return !selection.HasFilter() &&
         kFileNodesOfEach * nodes <= kStoredFlameNodes;
}

uint32_t FlameAdder::ChildOf(uint32_t parent, uint32_t frame, bool is_kernel) {
  const auto is_it = [&](uint32_t node) {
    const FlameNode& found = nodes_[node];
    return found.parent == parent && found.frame == frame &&
           (found.is_kernel != 0) == is_kernel;
  };
  // A file brings nodes in the order in which one before it did, most of them
  // in a row, and a look at the next one takes a fraction of a search.
  const uint32_t next = last_child_ + 1;
  if (next < nodes_.size() && is_it(next)) return last_child_ = next;
  const uint64_t hash = ksym::HashNumber(
      uint64_t{parent} << 32 | uint64_t{frame} << 1 | (is_kernel ? 1u : 0u));
  const auto [id, is_new] =
      node_ids_.FindOrInsert(hash, static_cast<uint32_t>(nodes_.size()), is_it);
  if (is_new) {
    nodes_.push_back({.parent = parent,
                      .is_kernel = is_kernel,
                      .frame = frame & kAllFrames});
  }
  last_child_ = id;
  return id;
}

uint32_t FlameAdder::RootOf(const FlameRoot& root) {
  // One more for the others.
  if (roots_.all().size() < kMaxRoots) return roots_.NumberOf(root);
  return roots_.NumberOf({.comm = builder_.Intern(kOtherCommands),
                          .user_state = StackState::kWhole,
                          .kernel_state = StackState::kWhole});
}

FrameId FlameAdder::RareFrame(bool is_kernel) {
  std::optional<FrameId>& known = is_kernel ? rare_kernel_ : rare_user_;
  if (!known) {
    known = builder_.AddFrame({.name = builder_.Intern(kRareCallees),
                               .kind = &RareKind(is_kernel),
                               .reason = kRareReason});
  }
  return *known;
}

bool FlameAdder::IsRare(uint32_t node) {
  const FlameNode& found = nodes_[node];
  return found.parent != 0 && found.frame == RareFrame(found.is_kernel != 0);
}

// A node's total is never more than its caller's, so the callers of a node that
// stays stay as well.
template <typename FrameOf, typename IsMark>
uint64_t FlameAdder::AddTree(std::span<const FlameNode> nodes, size_t most,
                             const FrameOf& frame_of, const IsMark& is_mark) {
  // Those that stay, and as many marks of those that do not.
  if (nodes_.size() + 2 * std::min(most, nodes.size()) > kMaxTreeNodes) {
    // To a quarter, so that it is not done for each of the next files.
    Prune(kMaxTreeNodes / 4);
  }
  auto& [totals, places, order] = tree_room_;
  FindTotals(nodes, totals);
  // Marks are made where they are needed, and take no other node's place.
  order.Begin(most);
  for (size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i].parent == 0 || !is_mark(nodes[i])) order.Add(totals[i]);
  }
  const std::optional<uint64_t> rare = order.Find();
  places.assign(nodes.size(), 0);
  for (size_t i = 1; i < nodes.size(); ++i) {
    const FlameNode& node = nodes[i];
    const uint32_t parent = places[node.parent];
    const bool is_kernel = node.is_kernel != 0;
    // Roots stay however small: they say whose stacks these are.
    if (node.parent == 0 || !rare || totals[i] > *rare) {
      places[i] = ChildOf(parent, frame_of(node), is_kernel);
    } else if (IsRare(parent)) {
      places[i] = parent;
    } else {
      places[i] = ChildOf(parent, RareFrame(is_kernel), is_kernel);
    }
    AddUpTo64Bits(nodes_[places[i]].count, node.count);
    AddUpTo64Bits(nodes_[places[i]].value, node.value);
  }
  return rare.value_or(0);
}

void FlameAdder::Prune(size_t nodes) {
  if (nodes_.size() <= nodes + 1) return;
  const std::vector<FlameNode> before = std::exchange(nodes_, {FlameNode{}});
  node_ids_ = {};
  const uint64_t rare = AddTree(
      before, nodes, [](const FlameNode& node) { return node.frame; },
      [this](const FlameNode& node) {
        return node.frame == RareFrame(node.is_kernel != 0);
      });
  AddUpTo64Bits(rare_up_to_, rare);
}

void FlameAdder::AddSamples() {
  const bool has_values = shown_kind_ && shown_kind_->has_values;
  std::vector<FrameId> user, kernel;
  for (size_t i = 1; i < nodes_.size(); ++i) {
    if (nodes_[i].count == 0) continue;
    user.clear();
    kernel.clear();
    size_t at = i;
    for (; nodes_[at].parent != 0; at = nodes_[at].parent) {
      (nodes_[at].is_kernel != 0 ? kernel : user).push_back(nodes_[at].frame);
    }
    const FlameRoot& root = roots_.all()[nodes_[at].frame];
    builder_.AddSample({.comm = root.comm,
                        .user_state = root.user_state,
                        .kernel_state = root.kernel_state,
                        .parked = root.parked,
                        .user = builder_.AddStack(user),
                        .kernel = builder_.AddStack(kernel),
                        .count = nodes_[i].count,
                        .value = has_values ? nodes_[i].value : 0});
  }
}

Profile FlameAdder::Finish() && {
  flame_room_ = {};
  Prune(bounds_.nodes);
  tree_room_ = {};
  if (shown_kind_) {
    metadata_.kinds = {*shown_kind_};
    AddSamples();
  }
  if (rare_up_to_ > 0) {
    metadata_.warnings.push_back(fmt::format(
        "too many stacks to show: what ran for {:.3f} ms or less may be in one "
        "frame of its caller, {}; tables of functions have all",
        static_cast<double>(rare_up_to_) / 1e6, kRareCallees));
  }
  return std::move(builder_).Finish(std::move(metadata_));
}

}  // namespace profd::history
