// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/history/coverage.h"
#include "daemon/history/file_flame.h"
#include "daemon/history/flame_nodes.h"
#include "daemon/history/one_kind.h"
#include "daemon/history/selection.h"
#include "daemon/history/stored_flames.h"
#include "daemon/history/tables.h"
#include "daemon/profile/id_index.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd::history {

// The command of samples whose own one is not told apart.
inline constexpr std::string_view kOtherCommands = "[other commands]";

// Adds files up to one tree of stacks for a flame graph, of any length of time
// in bounded memory: where there are too many nodes the smallest become
// "[rare callees]" of their callers, so that all sums stay exact, and what a
// function uses is never more than it was. Samples are told apart by command
// only. Not thread-safe.
class FlameAdder {
 public:
  // The tree's nodes while files are added: some 30 bytes each.
  static constexpr size_t kMaxTreeNodes = size_t{1} << 19;
  static constexpr size_t kMaxNodes = kMaxTreeNodes / 8;
  // Commands with stacks of one state; others are kOtherCommands.
  static constexpr size_t kMaxRoots = 4096;

  struct Bounds {
    // The tree has so many nodes in the end at the most, or kMaxNodes where
    // this is more, and "[rare callees]" beside each.
    size_t nodes = 0;
    size_t max_bytes = 0;  // of the texts and frames beside the tree
  };
  FlameAdder(Selection selection, const Bounds& bounds);

  // kCorrupt, kUnsupported: nothing was added. kLimit: there are too many
  // functions, and nothing may be added any more. O(n log n) of the file and
  // the nodes of its tree.
  ksym::Status Add(const Tables& tables);
  // The same of a file whose flames were read in place of its stacks and rows.
  // TakesFlames(), and all of its parts are of the selection's time. O(the
  // tables and the nodes of the flame).
  ksym::Status AddFlames(const Tables& tables, const StoredFlames& flames);
  // Whether a flame graph can be made of what files store.
  static bool TakesFlames(const Selection& selection, size_t nodes);
  const RangeCoverage& coverage() const { return coverage_.coverage(); }
  // A profile of one kind. Its warnings say below which use stacks were put
  // together.
  Profile Finish() &&;

 private:
  class File;

  uint32_t RootOf(const FlameRoot& root);
  // Puts a tree into this one: of it no more than so many nodes, and so many
  // "[rare callees]". The most that a node is of that became one of these.
  // `frame_of` gives the number here of a node's frame, or of a root, and
  // `is_mark` says whether it is "[rare callees]"; it is not asked of a root.
  template <typename FrameOf, typename IsMark>
  uint64_t AddTree(std::span<const FlameNode> nodes, size_t most,
                   const FrameOf& frame_of, const IsMark& is_mark);
  // The child of that frame, or, of the whole, of that root.
  uint32_t ChildOf(uint32_t parent, uint32_t frame, bool is_kernel);
  FrameId RareFrame(bool is_kernel);
  bool IsRare(uint32_t node);
  // Makes the tree anew with so many of its nodes.
  void Prune(size_t nodes);
  void AddSamples();

  const Selection selection_;
  const Bounds bounds_;
  OneKind kind_;
  CoverageAdder coverage_;
  ProfileBuilder builder_;
  CaptureMetadata metadata_;
  std::optional<SampleKind> shown_kind_;  // united where the rate changed
  FlameRoots roots_;
  FileFlame::Room flame_room_;
  // What AddTree() takes over from the one before.
  struct TreeRoom {
    std::vector<uint64_t> totals;
    std::vector<uint32_t> places;
    RareTotals order;
  } tree_room_;
  std::vector<FlameNode> nodes_ = {FlameNode{}};
  IdIndex node_ids_;
  uint32_t last_child_ = 0;  // that was asked for
  std::optional<FrameId> rare_user_;
  std::optional<FrameId> rare_kernel_;
  // What was of no more than this may be among rare callees, as all that was
  // put there at a time was; 0: nothing was.
  uint64_t rare_up_to_ = 0;
};

}  // namespace profd::history
