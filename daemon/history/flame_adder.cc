// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/flame_adder.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <ranges>

#include "daemon/base/bounded_sum.h"
#include "daemon/history/capture_facts.h"
#include "daemon/history/limits.h"
#include "daemon/history/part_counts.h"
#include "daemon/history/rare_callees.h"
#include "daemon/history/table_check.h"
#include "daemon/history/words.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Status;

// A node has the number of a frame in 31 bits; there are never so many.
constexpr uint32_t kAllFrames = (uint32_t{1} << 31) - 1;
constexpr uint32_t kNoNode = std::numeric_limits<uint32_t>::max();

}  // namespace

// Puts the wanted rows of one file into the tree.
class FlameAdder::File {
 public:
  File(const Tables& tables, FlameAdder& adder)
      : tables_(tables),
        adder_(adder),
        filter_(tables, adder.selection_),
        counts_(tables),
        strings_(tables.strings.size()),
        frames_(tables.functions.size()) {}

  Status Add() {
    if (auto right = CheckTables(tables_); !right) return right;
    adder_.kind_.Enter(tables_, filter_);
    if (auto added = AddRows(); !added) return added;
    for (uint32_t i = 0; i < tables_.parts.size(); ++i) {
      if (filter_.HasPart(i)) AddPart(i);
    }
    return {};
  }

 private:
  Status AddRows() {
    // Rows of a file follow each other by series and stack.
    const Row* last = nullptr;
    uint32_t node = kNoNode;
    size_t stacks = 0;
    for (const Row& row : tables_.rows) {
      if (!filter_.HasPart(row.part)) continue;
      const Series& series = tables_.series[row.series];
      if (!filter_.HasRow(row) || !adder_.kind_.Has(series)) {
        counts_.LeaveOut(row);
        continue;
      }
      counts_.Take(row);
      const bool is_same = last != nullptr && last->series == row.series &&
                           last->user == row.user && last->kernel == row.kernel;
      if (!is_same || node == kNoNode) {
        // Numbers of nodes are others afterwards.
        if (adder_.nodes_.size() + kMostNodesOfStack > kMaxTreeNodes) {
          // To a quarter, so that it is not done for each of the next stacks.
          adder_.Prune(kMaxTreeNodes / 4);
        }
        node = NodeOfStack(row, series);
        if (++stacks % 256 == 0 &&
            adder_.builder_.memory_bytes() > adder_.max_bytes_) {
          return TooLarge();
        }
      }
      last = &row;
      TreeNode& end = adder_.nodes_[node];
      AddUpTo64Bits(end.count, row.count);
      AddUpTo64Bits(end.value, adder_.kind_.ValueOfRow(series, row));
    }
    return {};
  }

  Status TooLarge() const {
    return Fail(ErrorCode::kLimit,
                fmt::format("the functions would take more than {} MiB: ask "
                            "for a shorter time, or for one unit or command",
                            adder_.max_bytes_ >> 20));
  }

  uint32_t NodeOfStack(const Row& row, const Series& series) {
    const uint32_t root = adder_.RootOf(
        {.comm = String(series.comm),
         .user_state = static_cast<StackState>(series.user_state),
         .kernel_state = static_cast<StackState>(series.kernel_state),
         .parked = series.parked != 0});
    return Walk(Walk(root, row.user, false), row.kernel, true);
  }

  // Goes from a node of the tree along a stack of the file.
  uint32_t Walk(uint32_t from, uint32_t stack, bool is_kernel) {
    path_.clear();
    for (uint32_t at = stack; at != 0; at = tables_.nodes[at].parent) {
      path_.push_back(FrameOf(tables_.nodes[at].function));
    }
    for (const FrameId frame : path_ | std::views::reverse) {
      from = adder_.ChildOf(from, frame, is_kernel);
    }
    return from;
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

  void AddPart(uint32_t number) {
    const Part& part = tables_.parts[number];
    adder_.builder_.Add(counts_.Of(number));
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

  // CheckTables() bounds both sides.
  static constexpr size_t kMostNodesOfStack = 2 * kMaxStackDepth + 1;

  const Tables& tables_;
  FlameAdder& adder_;
  const FileFilter filter_;
  PartCounts counts_;
  std::vector<std::optional<StringId>> strings_;
  std::vector<std::optional<FrameId>> frames_;
  std::vector<FrameId> path_;
};

Status FlameAdder::Add(const Tables& tables) {
  return File(tables, *this).Add();
}

uint32_t FlameAdder::ChildOf(uint32_t parent, uint32_t frame, bool is_kernel) {
  const uint64_t hash =
      MixHash(MixHash(0, parent), (uint64_t{frame} << 1) | (is_kernel ? 1 : 0));
  const auto [id, is_new] = node_ids_.FindOrInsert(
      hash, static_cast<uint32_t>(nodes_.size()), [&](uint32_t other) {
        const TreeNode& found = nodes_[other];
        return found.parent == parent && found.frame == frame &&
               (found.is_kernel != 0) == is_kernel;
      });
  if (is_new) {
    nodes_.push_back({.parent = parent,
                      .is_kernel = is_kernel,
                      .frame = frame & kAllFrames});
  }
  return id;
}

uint32_t FlameAdder::RootOf(const Root& wanted) {
  const auto find = [&](const Root& root) {
    const uint64_t hash =
        MixHash(MixHash(0, root.comm),
                (static_cast<uint64_t>(root.user_state) << 16) |
                    (static_cast<uint64_t>(root.kernel_state) << 8) |
                    (root.parked ? 1 : 0));
    return root_ids_.FindOrInsert(
        hash, static_cast<uint32_t>(roots_.size()),
        [&](uint32_t other) { return roots_[other] == root; });
  };
  // One more for the others.
  Root root = wanted;
  if (roots_.size() >= kMaxRoots) {
    root = {.comm = builder_.Intern(kOtherCommands),
            .user_state = StackState::kWhole,
            .kernel_state = StackState::kWhole};
  }
  const auto [number, is_new] = find(root);
  if (is_new) roots_.push_back(root);
  return ChildOf(0, number, /*is_kernel=*/false);
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
  const TreeNode& found = nodes_[node];
  return found.parent != 0 && found.frame == RareFrame(found.is_kernel != 0);
}

// Makes the tree anew. A node's total is never more than its caller's, so the
// callers of a node that stays stay as well.
void FlameAdder::Prune(size_t nodes) {
  if (nodes_.size() <= nodes + 1) return;
  std::vector<uint64_t> totals(nodes_.size());
  for (size_t i = nodes_.size(); --i > 0;) {
    AddUpTo64Bits(totals[i], nodes_[i].value);
    AddUpTo64Bits(totals[nodes_[i].parent], totals[i]);
  }
  std::vector<uint64_t> order(totals.begin() + 1, totals.end());
  std::ranges::nth_element(order, order.begin() + static_cast<int64_t>(nodes),
                           std::greater());
  const uint64_t most_rare = order[nodes];
  rare_below_ = std::max(rare_below_, most_rare + 1);

  const std::vector<TreeNode> before = std::exchange(nodes_, {TreeNode{}});
  node_ids_ = {};
  std::vector<uint32_t> places(before.size());
  for (size_t i = 1; i < before.size(); ++i) {
    const TreeNode& node = before[i];
    const uint32_t parent = places[node.parent];
    const bool is_kernel = node.is_kernel != 0;
    // Roots stay however small: they say whose stacks these are.
    if (node.parent == 0 || totals[i] > most_rare) {
      places[i] = ChildOf(parent, node.frame, is_kernel);
    } else if (IsRare(parent)) {
      places[i] = parent;
    } else {
      places[i] = ChildOf(parent, RareFrame(is_kernel), is_kernel);
    }
    AddUpTo64Bits(nodes_[places[i]].count, node.count);
    AddUpTo64Bits(nodes_[places[i]].value, node.value);
  }
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
    const Root& root = roots_[nodes_[at].frame];
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

Profile FlameAdder::Finish(size_t nodes) && {
  Prune(nodes);
  if (shown_kind_) {
    metadata_.kinds = {*shown_kind_};
    AddSamples();
  }
  if (rare_below_ > 0) {
    metadata_.warnings.push_back(fmt::format(
        "too many stacks to show: functions that ran for less than {:.3f} ms "
        "are one frame of their caller, {}; tables of functions have them",
        static_cast<double>(rare_below_) / 1e6, kRareCallees));
  }
  return std::move(builder_).Finish(std::move(metadata_));
}

}  // namespace profd::history
