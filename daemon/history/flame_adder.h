// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/history/coverage.h"
#include "daemon/history/one_kind.h"
#include "daemon/history/selection.h"
#include "daemon/history/tables.h"
#include "daemon/profile/id_index.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd::history {

// The command of samples whose own one is not told apart.
inline constexpr std::string_view kOtherCommands = "[other commands]";

// Adds files up to one tree of stacks for a flame graph, of any length of time
// in bounded memory: where there are too many nodes the smallest become
// "[rare callees]" of their callers, so that sums and what functions use
// themselves stay exact. Samples are told apart by command only. Not
// thread-safe.
class FlameAdder {
 public:
  // The tree's nodes while files are added: some 30 bytes each.
  static constexpr size_t kMaxTreeNodes = size_t{1} << 19;
  // Commands with stacks of one state; others are kOtherCommands.
  static constexpr size_t kMaxRoots = 4096;

  // `max_bytes` bounds the texts and frames beside the tree.
  FlameAdder(Selection selection, size_t max_bytes)
      : selection_(std::move(selection)),
        max_bytes_(max_bytes),
        kind_(selection_.kind) {}

  // kCorrupt, kUnsupported: nothing was added. kLimit: there are too many
  // functions, and nothing may be added any more. O(the file, and the depth of
  // each of its different stacks).
  ksym::Status Add(const Tables& tables);
  const RangeCoverage& coverage() const { return coverage_.coverage(); }
  // A profile of one kind whose stacks are a tree of so many nodes, and of
  // "[rare callees]" beside each at the most. Its warnings say whether small
  // ones were put together.
  Profile Finish(size_t nodes) &&;

 private:
  class File;

  // The beginning of stacks: a command and how its stacks ended.
  struct Root {
    StringId comm = 0;
    StackState user_state = StackState::kNone;
    StackState kernel_state = StackState::kNone;
    bool parked = false;

    friend bool operator==(const Root&, const Root&) = default;
  };
  // Node 0 is the whole; its children are the roots.
  struct TreeNode {
    uint32_t parent = 0;
    uint32_t is_kernel : 1 = 0;  // on the kernel's side of the stack
    uint32_t frame : 31 = 0;     // of a root its number
    uint64_t count = 0;          // of samples that end here
    uint64_t value = 0;          // what they stand for
  };

  uint32_t RootOf(const Root& root);
  // The child of that frame, or, of the whole, of that root.
  uint32_t ChildOf(uint32_t parent, uint32_t frame, bool is_kernel);
  FrameId RareFrame(bool is_kernel);
  bool IsRare(uint32_t node);
  void Prune(size_t nodes);
  void AddSamples();

  const Selection selection_;
  const size_t max_bytes_;
  OneKind kind_;
  CoverageAdder coverage_;
  ProfileBuilder builder_;
  CaptureMetadata metadata_;
  std::optional<SampleKind> shown_kind_;  // united where the rate changed
  std::vector<Root> roots_;
  IdIndex root_ids_;
  std::vector<TreeNode> nodes_ = {TreeNode{}};  // parents in front
  IdIndex node_ids_;
  std::optional<FrameId> rare_user_;
  std::optional<FrameId> rare_kernel_;
  // Nodes of less than this were put together; 0: none.
  uint64_t rare_below_ = 0;
};

}  // namespace profd::history
