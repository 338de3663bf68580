// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/flame_tree.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <utility>

#include "daemon/output/stack_state.h"
#include "daemon/profile/frame_kinds.h"
#include "daemon/profile/parked.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

// Folded stacks of other programs have names only.
enum class Modules : uint8_t { kNone, kKnown };
Modules ModulesOf(const Profile& profile) {
  const auto has_module = [](const Frame& frame) {
    return frame.kind->is_in_file && frame.object != 0;
  };
  return std::ranges::any_of(profile.frames, has_module) ? Modules::kKnown
                                                         : Modules::kNone;
}

FlameKind ColourOf(const Frame& frame, Modules modules) {
  if (frame.reason != ksym::Unresolved::kNone) return FlameKind::kUnknown;
  return (modules == Modules::kKnown ? frame.kind : WithoutFiles(frame.kind))
      ->colour;
}

FlameFrame Shown(const Profile& profile, const Frame& frame, Modules modules) {
  FlameFrame shown = {.name = ksym::Printable(profile.String(frame.name)),
                      .object = ksym::Printable(profile.String(frame.object)),
                      .kind = ColourOf(frame, modules)};
  if (shown.name.empty()) shown.name = "[unknown]";
  return shown;
}

}  // namespace

// Which line of a node has how many samples. Frames that print the same are one
// node, whatever their lines.
class FlameTree::PlaceCounts {
 public:
  // Does nothing if the profile has no lines.
  PlaceCounts(const Profile& profile, FlameTree& tree) : tree_(tree) {
    std::vector<std::string> of_frame;
    of_frame.reserve(profile.frames.size());
    for (const Frame& frame : profile.frames) {
      of_frame.push_back(PlaceText(profile, frame));
    }
    std::vector<std::string> all = of_frame;
    all.emplace_back();
    std::ranges::sort(all);
    const auto repeated = std::ranges::unique(all);
    all.erase(repeated.begin(), repeated.end());
    if (all.size() < 2) return;
    for (const std::string& place : of_frame) {
      numbers_.push_back(static_cast<uint32_t>(
          std::ranges::lower_bound(all, place) - all.begin()));
    }
    tree_.places_ = std::move(all);
  }

  bool has_places() const { return !numbers_.empty(); }
  uint32_t Number(FrameId frame) const { return numbers_[frame]; }
  void Add(uint32_t node, uint32_t place, uint64_t count) {
    if (place != 0) counts_.push_back({node, place, count});
  }

  // The heaviest place of each node, the first of equal ones.
  void Finish() {
    if (!has_places()) return;
    tree_.node_places_.assign(tree_.nodes_.size(), 0);
    std::ranges::sort(counts_, {}, [](const Count& count) {
      return std::pair(count.node, count.place);
    });
    std::vector<uint64_t> most(tree_.nodes_.size());
    for (size_t i = 0; i < counts_.size();) {
      const auto [node, place, unused] = counts_[i];
      uint64_t sum = 0;
      for (; i < counts_.size() && counts_[i].node == node &&
             counts_[i].place == place;
           ++i) {
        sum += counts_[i].count;
      }
      if (sum <= most[node]) continue;
      most[node] = sum;
      tree_.node_places_[node] = place;
    }
  }

 private:
  struct Count {
    uint32_t node = 0;
    uint32_t place = 0;
    uint64_t count = 0;
  };

  static std::string PlaceText(const Profile& profile, const Frame& frame) {
    if (frame.file == 0) return {};
    return ksym::Printable(profile.String(frame.file)) + ":" +
           std::to_string(frame.line);
  }

  FlameTree& tree_;
  std::vector<uint32_t> numbers_;  // by FrameId; empty: there are no lines
  std::vector<Count> counts_;
};

class FlameTree::Builder {
 public:
  Builder(const Profile& profile, FlameTree& tree)
      : profile_(profile),
        tree_(tree),
        are_states_(profile.metadata.kinds.size() > 1 &&
                    AreThreadStates(profile.metadata.kinds)),
        places_(profile, tree) {}

  void Run() {
    NumberFrames();
    NumberCgroups();
    std::vector<size_t> order;
    for (const ProfileSample& sample : profile_.samples) {
      // Waits that lasted no time are none of it.
      if (CountOf(sample) != 0) order.push_back(paths_.size());
      AddPath(sample);
    }
    std::ranges::sort(order, [&](size_t a, size_t b) {
      return std::ranges::lexicographical_compare(Path(a), Path(b));
    });
    tree_.nodes_.emplace_back();
    for (const size_t index : order) AddToTree(index);
    std::ranges::sort(tree_.leaves_);
    MergeLeaves();
    places_.Finish();
  }

 private:
  struct PathRange {
    size_t begin = 0;
    size_t end = 0;
  };

  // Where there is one kind its values are the counts (KeepFirstKind()).
  uint64_t CountOf(const ProfileSample& sample) const {
    const std::vector<SampleKind>& kinds = profile_.metadata.kinds;
    return kinds.size() > 1 && kinds[sample.kind].has_values ? sample.value
                                                             : sample.count;
  }

  // The weight of a sample among those of other kinds: its time, or its count.
  uint64_t WeightOf(const ProfileSample& sample) const {
    const std::vector<SampleKind>& kinds = profile_.metadata.kinds;
    return are_states_ ? ValueOf(kinds[sample.kind], sample.count, sample.value)
                       : sample.count;
  }

  // All frames that can be in the tree, sorted, so that comparing their
  // numbers is comparing what is shown.
  void NumberFrames() {
    std::vector<FlameFrame> shown;
    shown.reserve(profile_.frames.size());
    const Modules modules = ModulesOf(profile_);
    for (const Frame& frame : profile_.frames) {
      shown.push_back(Shown(profile_, frame, modules));
    }
    std::vector<FlameFrame> all = shown;
    for (const ProfileSample& sample : profile_.samples) {
      all.push_back(Process(sample));
    }
    for (const std::string_view mark : kStackMarks) all.push_back(Mark(mark));
    const FlameFrame parked = {.name = std::string(kParkedName),
                               .object = {},
                               .kind = kWaitFrame.colour};
    const bool has_parked =
        std::ranges::any_of(profile_.samples, [&](const ProfileSample& sample) {
          return IsFolded(profile_, sample);
        });
    if (has_parked) all.push_back(parked);
    std::ranges::sort(all);
    const auto repeated = std::ranges::unique(all);
    all.erase(repeated.begin(), repeated.end());
    tree_.frames_ = std::move(all);
    numbers_.reserve(shown.size());
    for (const FlameFrame& frame : shown) numbers_.push_back(Number(frame));
    if (has_parked) tree_.parked_frame_ = Number(parked);
  }

  // Their numbers are in the order of the paths, not of the samples.
  void NumberCgroups() {
    std::map<std::string_view, StringId> ids = {{std::string_view(), 0}};
    for (const ProfileSample& sample : profile_.samples) {
      ids.emplace(profile_.String(sample.cgroup), sample.cgroup);
    }
    for (const auto& [path, id] : ids) {
      cgroup_numbers_[id] = static_cast<uint32_t>(tree_.cgroups_.size());
      tree_.cgroups_.emplace_back(path);
    }
  }

  FlameFrame Process(const ProfileSample& sample) const {
    FlameFrame process = {.name = ksym::Printable(profile_.String(sample.comm)),
                          .object = {},
                          .kind = FlameKind::kProcess};
    if (process.name.empty()) process.name = "[unknown]";
    return process;
  }
  static FlameFrame Mark(std::string_view mark) {
    return {
        .name = std::string(mark), .object = {}, .kind = FlameKind::kUnknown};
  }
  uint32_t Number(const FlameFrame& frame) const {
    const auto at = std::ranges::lower_bound(tree_.frames_, frame);
    return static_cast<uint32_t>(at - tree_.frames_.begin());
  }

  void AddPath(const ProfileSample& sample) {
    const size_t begin = path_frames_.size();
    Append(Number(Process(sample)), 0);
    if (tree_.parked_frame_ && IsFolded(profile_, sample)) {
      Append(*tree_.parked_frame_, 0);
    }
    AddStack(sample.user_state, sample.user, StackOf::kUser);
    AddStack(sample.kernel_state, sample.kernel, StackOf::kKernel);
    paths_.push_back({begin, path_frames_.size()});
  }

  void AddStack(StackState state, CallStackId stack, StackOf of) {
    if (const auto mark = MarkOf(state, of)) {
      Append(Number(Mark(kStackMarks[*mark])), 0);
    }
    if (IsMissed(state)) return;
    for (const FrameId frame : profile_.Stack(stack) | std::views::reverse) {
      Append(numbers_[frame], places_.has_places() ? places_.Number(frame) : 0);
    }
  }

  void Append(uint32_t frame, uint32_t place) {
    path_frames_.push_back(frame);
    if (places_.has_places()) path_places_.push_back(place);
  }

  std::span<const uint32_t> Path(size_t index) const {
    const PathRange range = paths_[index];
    return std::span(path_frames_)
        .subspan(range.begin, range.end - range.begin);
  }

  // Paths come in order: what a path shares with the one before is there.
  void AddToTree(size_t index) {
    const auto path = Path(index);
    size_t depth = 0;
    while (depth < path.size() && depth < open_.size() &&
           tree_.nodes_[open_[depth]].frame == path[depth]) {
      ++depth;
    }
    open_.resize(depth);
    for (; depth < path.size(); ++depth) {
      const uint32_t parent = depth == 0 ? 0 : open_.back();
      open_.push_back(static_cast<uint32_t>(tree_.nodes_.size()));
      tree_.nodes_.push_back({.parent = parent, .frame = path[depth]});
    }
    const ProfileSample& sample = profile_.samples[index];
    if (places_.has_places()) {
      const size_t begin = paths_[index].begin;
      for (size_t i = 0; i < open_.size(); ++i) {
        places_.Add(open_[i], path_places_[begin + i], WeightOf(sample));
      }
    }
    tree_.leaves_.push_back({.node = open_.back(),
                             .pid = sample.pid,
                             .tid = sample.tid,
                             .cgroup = cgroup_numbers_.at(sample.cgroup),
                             .kind = sample.kind,
                             .count = CountOf(sample)});
  }

  void MergeLeaves() {
    auto& leaves = tree_.leaves_;
    size_t kept = 0;
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (kept != 0 && leaves[kept - 1].node == leaves[i].node &&
          leaves[kept - 1].pid == leaves[i].pid &&
          leaves[kept - 1].tid == leaves[i].tid &&
          leaves[kept - 1].cgroup == leaves[i].cgroup &&
          leaves[kept - 1].kind == leaves[i].kind) {
        leaves[kept - 1].count += leaves[i].count;
      } else {
        leaves[kept++] = leaves[i];
      }
    }
    leaves.resize(kept);
  }

  const Profile& profile_;
  FlameTree& tree_;
  bool are_states_;
  std::vector<uint32_t> numbers_;  // by FrameId: index into frames()
  std::map<StringId, uint32_t> cgroup_numbers_;
  PlaceCounts places_;
  std::vector<uint32_t> path_frames_;
  std::vector<uint32_t> path_places_;  // empty, or one for each of those
  std::vector<PathRange> paths_;       // by sample
  std::vector<uint32_t> open_;         // nodes of the path before
};

FlameTree::FlameTree(const Profile& profile) { Builder(profile, *this).Run(); }

}  // namespace profd
