// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/profile/profile.h"

namespace profd {

struct FlameFrame {
  std::string name;  // printable, not empty
  std::string object;
  FlameKind kind = FlameKind::kProcess;

  friend auto operator<=>(const FlameFrame&, const FlameFrame&) = default;
};

// The stacks of a profile as one tree, root first: command name, user frames,
// kernel frames. Those of parked threads are below a frame "[parked]" behind
// the command, as IsFolded() says. Frames that print the same are one. The
// order of nodes does not depend on the order of samples.
class FlameTree {
 public:
  // Index 0 is the root of all, whose parent and frame mean nothing. A node's
  // subtree follows it, and siblings are in the order of their frames.
  struct Node {
    uint32_t parent = 0;
    uint32_t frame = 0;  // index into frames()
  };
  // Samples whose stack ends in a node, by thread (or process), cgroup and
  // kind. `count` is the sum of their values where their kind has those.
  struct Leaf {
    uint32_t node = 0;
    uint32_t pid = 0;
    uint32_t tid = 0;     // 0 unless threads were asked for
    uint32_t cgroup = 0;  // index into cgroups()
    SampleKindId kind = 0;
    uint64_t count = 0;
    friend auto operator<=>(const Leaf&, const Leaf&) = default;
  };

  // Cost: sorts the stacks. Memory: 4 bytes per frame of every stack.
  explicit FlameTree(const Profile& profile);

  const std::vector<FlameFrame>& frames() const { return frames_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Leaf>& leaves() const { return leaves_; }
  // Paths of cgroups, each once, in order; [0] is empty.
  const std::vector<std::string>& cgroups() const { return cgroups_; }
  // That of "[parked]", an index into frames(); nothing: none is below one.
  std::optional<uint32_t> parked_frame() const { return parked_frame_; }
  // Lines of source, "FILE:LINE", each once; [0] is empty. None without lines.
  const std::vector<std::string>& places() const { return places_; }
  // By node: where most of its samples are, as an index into places().
  const std::vector<uint32_t>& node_places() const { return node_places_; }

 private:
  class Builder;
  class PlaceCounts;
  std::vector<FlameFrame> frames_;
  std::vector<Node> nodes_;
  std::vector<Leaf> leaves_;
  std::vector<std::string> cgroups_;
  std::vector<std::string> places_;
  std::vector<uint32_t> node_places_;
  std::optional<uint32_t> parked_frame_;
};

}  // namespace profd
