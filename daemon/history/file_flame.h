// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "daemon/history/flame_nodes.h"
#include "daemon/history/tables.h"
#include "daemon/profile/id_index.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd::history {

// The beginning of stacks: a command and how its stacks ended.
struct FlameRoot {
  StringId comm = 0;
  StackState user_state = StackState::kNone;
  StackState kernel_state = StackState::kNone;
  bool parked = false;

  friend bool operator==(const FlameRoot&, const FlameRoot&) = default;
};

// Numbers roots in the order in which they come.
class FlameRoots {
 public:
  uint32_t NumberOf(const FlameRoot& root);
  const std::vector<FlameRoot>& all() const { return roots_; }

 private:
  std::vector<FlameRoot> roots_;
  IdIndex ids_;
};

// The functions and stacks of one file as a flame graph shows them: those that
// it does not tell apart have one number, that of the first. The tables were
// checked, and must live longer. Cost: once over functions and nodes.
class FlameStacks {
 public:
  explicit FlameStacks(const Tables& tables);

  uint32_t FunctionOf(uint32_t function) const { return functions_[function]; }
  uint32_t NodeOf(uint32_t node) const { return nodes_[node]; }

 private:
  void UniteFunctions();
  void UniteNodes();

  const Tables& tables_;
  std::vector<uint32_t> functions_;  // by function: the first like it
  std::vector<bool> has_like_;       // by function: there are others like it
  std::vector<uint32_t> nodes_;      // by node: the first like it
};

// The functions of a file that stand for callees that were too rare to be kept:
// a file that was thinned out has some.
class RareFunctions {
 public:
  explicit RareFunctions(const Tables& tables);

  bool Is(uint32_t function) const {
    return name_ && tables_.functions[function].name == *name_;
  }

 private:
  const Tables& tables_;
  std::optional<uint32_t> name_;  // the string kRareCallees
};

// Makes trees of the stacks of one file. Roots and frames have the file's
// numbers: of strings in a root, and of functions that are the first ones like
// them. Memory: of the stacks, a tree, and some 20 bytes for each node of the
// file.
class FileFlame {
 public:
  // A tree's nodes; what the file has beyond them makes another tree.
  static constexpr size_t kMaxNodes = size_t{1} << 19;

  class Room;

  // `most` is how many nodes of a tree need to stay apart; the smallest are
  // kRareFrame. The room must live longer, and is used by one at a time.
  FileFlame(const Tables& tables, size_t most, Room& room);

  // Samples of a row's stack.
  void Add(const Row& row, uint64_t value);
  // Called with each tree; after a failure no more.
  using TakeTree = std::function<ksym::Status(std::span<const FlameNode>)>;
  ksym::Status Finish(const TakeTree& take);
  const FlameRoots& roots() const { return roots_; }
  // The most that a stack with all that it calls was of in the file, of those
  // that became kRareFrame. Finish() was called.
  uint64_t rare_up_to() const { return rare_up_to_; }

 private:
  // A root and nodes that are the first like them, as one number that stacks
  // are sorted by: what they share from the root on comes first.
  class StackKey {
   public:
    StackKey(uint32_t root, uint32_t user, uint32_t kernel);

    uint32_t root() const;
    uint32_t user() const;
    uint32_t kernel() const;
    // Callees of user() that are too small.
    bool is_rare() const;
    // The same of a caller.
    StackKey RareBelow(uint32_t user) const;

    friend auto operator<=>(const StackKey&, const StackKey&) = default;

   private:
    uint64_t number_ = 0;
  };
  struct Stack {
    StackKey key;
    uint64_t count = 0;
    uint64_t value = 0;
  };
  // Where a node of the file is in the tree, below the node that a walk began
  // at last.
  struct Place {
    uint32_t below = 0;  // 0: nowhere
    uint32_t node = 0;
  };
  // By the side of the stack.
  using Places = std::array<Place, 2>;

  uint32_t RootOf(uint32_t series);
  bool MayHaveRare() const;
  void FoldRare();
  void UniteStacks();
  ksym::Status Give(const TakeTree& take);
  bool IsMark(const FlameNode& node) const;
  void AddStack(const Stack& stack);
  uint32_t RootNode(uint32_t root);
  uint32_t AddNode(const FlameNode& node);
  uint32_t NumberOf(uint32_t node);
  uint32_t Walk(uint32_t from, uint32_t stack, bool is_kernel);
  void Clear();

  const Tables& tables_;
  const FlameStacks same_;
  const size_t most_;
  const RareFunctions mark_;
  FlameRoots roots_;
  std::vector<uint32_t> root_of_series_;  // and one more; 0: not known yet
  uint64_t rare_up_to_ = 0;
  uint64_t pruned_up_to_ = 0;
  RareTotals& order_;
  std::vector<Stack>& stacks_;
  const Row* last_row_ = nullptr;
  TreePruner& pruner_;
  std::vector<FlameNode>& nodes_;
  std::vector<uint32_t> root_nodes_;  // by root; 0: not in the tree
  std::vector<uint32_t> numbers_;     // by node of the file
  std::vector<Places>& places_;       // by number; 0: of no node
  std::vector<uint32_t> path_;
};

// Memory that the next file's tree takes over: pages that are new cost time.
class FileFlame::Room {
 private:
  friend FileFlame;

  RareTotals order_;
  std::vector<Stack> stacks_;
  TreePruner pruner_;
  std::vector<FlameNode> nodes_;
  std::vector<Places> places_;
};

}  // namespace profd::history
