// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/file_flame.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <tuple>
#include <utility>

#include "daemon/base/bounded_sum.h"
#include "daemon/history/limits.h"
#include "daemon/history/rare_callees.h"
#include "ksym/base/keyed_hash.h"
#include "ksym/base/number_hash.h"

namespace profd::history {
namespace {

// The parts of a stack's key, from its end on.
constexpr unsigned kNodeBits = 20;
constexpr unsigned kRareBit = kNodeBits;
constexpr unsigned kUserAt = kRareBit + 1;
constexpr unsigned kRootAt = kUserAt + kNodeBits;
constexpr uint64_t kNodeMask = (uint64_t{1} << kNodeBits) - 1;
static_assert(kMaxNodes <= uint64_t{1} << kNodeBits);
// There are no more roots than series.
static_assert(kMaxSeries <= uint64_t{1} << (64 - kRootAt));

}  // namespace

FileFlame::StackKey::StackKey(uint32_t root, uint32_t user, uint32_t kernel)
    : number_(uint64_t{root} << kRootAt | uint64_t{user} << kUserAt | kernel) {}

uint32_t FileFlame::StackKey::root() const {
  return static_cast<uint32_t>(number_ >> kRootAt);
}

uint32_t FileFlame::StackKey::user() const {
  return static_cast<uint32_t>(number_ >> kUserAt & kNodeMask);
}

uint32_t FileFlame::StackKey::kernel() const {
  return static_cast<uint32_t>(number_ & kNodeMask);
}

bool FileFlame::StackKey::is_rare() const {
  return (number_ >> kRareBit & 1) != 0;
}

FileFlame::StackKey FileFlame::StackKey::RareBelow(uint32_t user) const {
  StackKey key(root(), user, 0);
  key.number_ |= uint64_t{1} << kRareBit;
  return key;
}

uint32_t FlameRoots::NumberOf(const FlameRoot& root) {
  const uint64_t hash = ksym::HashWords(
      root.comm, (static_cast<uint64_t>(root.user_state) << 16) |
                     (static_cast<uint64_t>(root.kernel_state) << 8) |
                     (root.parked ? 1u : 0u));
  const auto [number, is_new] =
      ids_.FindOrInsert(hash, static_cast<uint32_t>(roots_.size()),
                        [&](uint32_t other) { return roots_[other] == root; });
  if (is_new) roots_.push_back(root);
  return number;
}

FlameStacks::FlameStacks(const Tables& tables)
    : tables_(tables),
      functions_(tables.functions.size()),
      has_like_(tables.functions.size()),
      nodes_(tables.nodes.size()) {
  UniteFunctions();
  UniteNodes();
}

// By what FlameAdder takes of a function. A file has each text once.
void FlameStacks::UniteFunctions() {
  const auto key = [](const Function& function) {
    return std::tie(function.name, function.object, function.kind,
                    function.reason, function.flags);
  };
  IdIndex ids;
  for (uint32_t i = 0; i < functions_.size(); ++i) {
    const Function& function = tables_.functions[i];
    const uint64_t hash = ksym::HashWords(
        ksym::WordOf(function.name, function.object),
        ksym::WordOf(function.kind, function.reason), function.flags);
    const auto [first, is_new] = ids.FindOrInsert(hash, i, [&](uint32_t other) {
      return key(tables_.functions[other]) == key(function);
    });
    functions_[i] = first;
    if (!is_new) has_like_[first] = has_like_[i] = true;
  }
}

// A stack can be like another one only where its function has one like it, or
// its caller does: only these are looked up.
void FlameStacks::UniteNodes() {
  std::vector<bool> may_have_like(nodes_.size());
  IdIndex ids;
  for (uint32_t i = 1; i < nodes_.size(); ++i) {
    const Node& node = tables_.nodes[i];
    const uint32_t parent = nodes_[node.parent];
    nodes_[i] = i;
    if (!may_have_like[parent] && !has_like_[node.function]) continue;
    const uint32_t function = functions_[node.function];
    nodes_[i] =
        ids.FindOrInsert(ksym::HashNumber(ksym::WordOf(parent, function)), i,
                         [&](uint32_t other) {
                           const Node& found = tables_.nodes[other];
                           return nodes_[found.parent] == parent &&
                                  functions_[found.function] == function;
                         })
            .first;
    may_have_like[nodes_[i]] = true;
  }
}

RareFunctions::RareFunctions(const Tables& tables) : tables_(tables) {
  const auto found = std::ranges::find(
      tables.functions, kRareCallees, [&](const Function& function) {
        return tables.strings.Get(function.name);
      });
  if (found != tables.functions.end()) name_ = found->name;
}

FileFlame::FileFlame(const Tables& tables, size_t most, Room& room)
    : tables_(tables),
      same_(tables),
      most_(most),
      mark_(tables),
      root_of_series_(tables.series.size()),
      order_(room.order_),
      stacks_(room.stacks_),
      pruner_(room.pruner_),
      nodes_(room.nodes_),
      places_(room.places_) {
  stacks_.clear();
}

uint32_t FileFlame::RootOf(uint32_t number) {
  uint32_t& known = root_of_series_[number];
  if (known == 0) {
    const Series& series = tables_.series[number];
    known = roots_.NumberOf(
                {.comm = series.comm,
                 .user_state = static_cast<StackState>(series.user_state),
                 .kernel_state = static_cast<StackState>(series.kernel_state),
                 .parked = series.parked != 0}) +
            1;
  }
  return known - 1;
}

void FileFlame::Add(const Row& row, uint64_t value) {
  // Rows of a file follow each other by series and stack.
  if (last_row_ == nullptr || last_row_->series != row.series ||
      last_row_->user != row.user || last_row_->kernel != row.kernel) {
    stacks_.push_back(
        {.key = StackKey(RootOf(row.series), same_.NodeOf(row.user),
                         same_.NodeOf(row.kernel))});
  }
  last_row_ = &row;
  AddUpTo64Bits(stacks_.back().count, row.count);
  AddUpTo64Bits(stacks_.back().value, value);
}

// Whether there are more of the user's stacks than stay. It may say so of some
// that share their callers.
bool FileFlame::MayHaveRare() const {
  size_t steps = 0;
  for (const Stack& stack : stacks_) {
    for (uint32_t at = stack.key.user(); at != 0;
         at = tables_.nodes[at].parent) {
      if (++steps > most_) return true;
    }
  }
  return false;
}

// Most stacks of a file were seen once. A stack of a command, and one that the
// kernel's side goes on from, is no more than the user's stack is of all
// commands, so what is too small of these need not be walked.
void FileFlame::FoldRare() {
  if (!MayHaveRare()) return;
  std::vector<uint64_t> totals(tables_.nodes.size());  // by node
  for (const Stack& stack : stacks_) {
    AddUpTo64Bits(totals[stack.key.user()], stack.value);
  }
  order_.Begin(most_);
  for (auto i = static_cast<uint32_t>(totals.size()); --i > 0;) {
    if (totals[i] == 0) continue;
    AddUpTo64Bits(totals[same_.NodeOf(tables_.nodes[i].parent)], totals[i]);
    order_.Add(totals[i]);
  }
  const std::optional<uint64_t> rare = order_.Find();
  if (!rare) return;
  rare_up_to_ = *rare;
  // By node: it, or its last caller that stays.
  std::vector<uint32_t> kept(totals.size());
  for (uint32_t i = 1; i < kept.size(); ++i) {
    const bool stays = totals[i] > rare_up_to_;
    kept[i] = stays ? i : kept[same_.NodeOf(tables_.nodes[i].parent)];
  }
  for (Stack& stack : stacks_) {
    const uint32_t user = kept[stack.key.user()];
    if (user != stack.key.user()) stack.key = stack.key.RareBelow(user);
  }
}

// Sorts them, so that a walk finds what it shares with the ones before it by
// nothing but the places of these; processes of one command have one then.
void FileFlame::UniteStacks() {
  std::ranges::sort(stacks_, {}, &Stack::key);
  size_t kept = 0;
  for (size_t at = 1; at < stacks_.size(); ++at) {
    if (stacks_[at].key != stacks_[kept].key) {
      stacks_[++kept] = stacks_[at];
      continue;
    }
    AddUpTo64Bits(stacks_[kept].count, stacks_[at].count);
    AddUpTo64Bits(stacks_[kept].value, stacks_[at].value);
  }
  if (stacks_.empty()) return;
  stacks_.erase(stacks_.begin() + static_cast<ptrdiff_t>(kept) + 1,
                stacks_.end());
}

ksym::Status FileFlame::Finish(const TakeTree& take) {
  FoldRare();
  UniteStacks();
  numbers_.resize(tables_.nodes.size());
  places_.assign(1, Places{});
  Clear();
  for (const Stack& stack : stacks_) {
    // CheckTables() bounds both sides of a stack.
    if (nodes_.size() + 2 * kMaxStackDepth + 1 > kMaxNodes) {
      if (auto taken = Give(take); !taken) return taken;
      Clear();
    }
    AddStack(stack);
  }
  auto taken = Give(take);
  rare_up_to_ = std::max(rare_up_to_, pruned_up_to_);
  return taken;
}

ksym::Status FileFlame::Give(const TakeTree& take) {
  const auto nodes = pruner_.Prune(
      nodes_, most_, [this](const FlameNode& node) { return IsMark(node); });
  AddUpTo64Bits(pruned_up_to_, pruner_.rare_up_to());
  return take(nodes);
}

bool FileFlame::IsMark(const FlameNode& node) const {
  return node.frame == kRareFrame || mark_.Is(node.frame);
}

void FileFlame::Clear() {
  nodes_.assign(1, FlameNode{});
  root_nodes_.assign(roots_.all().size(), 0);
  std::ranges::fill(places_, Places{});
}

void FileFlame::AddStack(const Stack& stack) {
  const StackKey key = stack.key;
  const uint32_t root = RootNode(key.root());
  const uint32_t user = Walk(root, key.user(), /*is_kernel=*/false);
  // Stacks are different, so a caller has one mark.
  const uint32_t end = key.is_rare()
                           ? AddNode({.parent = user, .frame = kRareFrame})
                           : Walk(user, key.kernel(), /*is_kernel=*/true);
  AddUpTo64Bits(nodes_[end].count, stack.count);
  AddUpTo64Bits(nodes_[end].value, stack.value);
}

uint32_t FileFlame::RootNode(uint32_t root) {
  uint32_t& node = root_nodes_[root];
  if (node == 0) node = AddNode({.parent = 0, .frame = root & kAllFrames});
  return node;
}

uint32_t FileFlame::AddNode(const FlameNode& node) {
  nodes_.push_back(node);
  return static_cast<uint32_t>(nodes_.size() - 1);
}

// Few of the file's nodes are in the tree, so these have numbers of their own.
uint32_t FileFlame::NumberOf(uint32_t node) {
  uint32_t& number = numbers_[node];
  if (number == 0) {
    number = static_cast<uint32_t>(places_.size());
    places_.emplace_back();
  }
  return number;
}

// Goes from a node of the tree along a stack of the file: up to the last caller
// that is there, and down again.
uint32_t FileFlame::Walk(uint32_t from, uint32_t stack, bool is_kernel) {
  const size_t side = is_kernel ? 1 : 0;
  path_.clear();
  uint32_t at = stack;
  while (at != 0 && places_[NumberOf(at)][side].below != from) {
    path_.push_back(at);
    at = same_.NodeOf(tables_.nodes[at].parent);
  }
  uint32_t end = at == 0 ? from : places_[numbers_[at]][side].node;
  for (const uint32_t node : path_ | std::views::reverse) {
    const uint32_t function = same_.FunctionOf(tables_.nodes[node].function);
    end = AddNode({.parent = end,
                   .is_kernel = is_kernel,
                   .frame = function & kAllFrames});
    places_[numbers_[node]][side] = {.below = from, .node = end};
  }
  return end;
}

}  // namespace profd::history
