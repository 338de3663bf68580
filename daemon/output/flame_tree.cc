#include "daemon/output/flame_tree.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>
#include <span>
#include <utility>

#include "daemon/output/stack_state.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

std::string Printable(std::string_view text) {
  std::string out;
  ksym::AppendPrintable(text, out);
  return out;
}

FlameKind KindOf(const Profile& profile, const Frame& frame) {
  if (frame.reason != ksym::Unresolved::kNone) return FlameKind::kUnknown;
  if (frame.kind == FrameKind::kUser) {
    return frame.module == 0 ? FlameKind::kGenerated : FlameKind::kUser;
  }
  return profile.String(frame.module) == "[bpf]" ? FlameKind::kBpf
                                                 : FlameKind::kKernel;
}

FlameFrame Shown(const Profile& profile, const Frame& frame) {
  FlameFrame shown = {.name = Printable(profile.String(frame.name)),
                      .module = Printable(profile.String(frame.module)),
                      .kind = KindOf(profile, frame)};
  if (shown.name.empty()) shown.name = "[unknown]";
  return shown;
}

}  // namespace

class FlameTree::Builder {
 public:
  Builder(const Profile& profile, FlameTree& tree)
      : profile_(profile), tree_(tree) {}

  void Run() {
    NumberFrames();
    for (const ProfileSample& sample : profile_.samples) AddPath(sample);
    std::vector<size_t> order(paths_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, [&](size_t a, size_t b) {
      return std::ranges::lexicographical_compare(Path(a), Path(b));
    });
    tree_.nodes_.emplace_back();
    for (const size_t index : order) AddToTree(index);
    std::ranges::sort(tree_.leaves_);
    MergeLeaves();
  }

 private:
  struct PathRange {
    size_t begin = 0;
    size_t end = 0;
  };

  // All frames that can be in the tree, sorted, so that comparing their
  // numbers is comparing what is shown.
  void NumberFrames() {
    std::vector<FlameFrame> shown;
    shown.reserve(profile_.frames.size());
    for (const Frame& frame : profile_.frames) {
      shown.push_back(Shown(profile_, frame));
    }
    std::vector<FlameFrame> all = shown;
    for (const ProfileSample& sample : profile_.samples) {
      all.push_back(Process(sample));
    }
    for (const std::string_view mark :
         {kMissedUserStack, kMissedKernelStack, kTruncatedMark}) {
      all.push_back(Mark(mark));
    }
    std::ranges::sort(all);
    const auto repeated = std::ranges::unique(all);
    all.erase(repeated.begin(), repeated.end());
    tree_.frames_ = std::move(all);
    numbers_.reserve(shown.size());
    for (const FlameFrame& frame : shown) numbers_.push_back(Number(frame));
  }

  FlameFrame Process(const ProfileSample& sample) const {
    FlameFrame process = {.name = Printable(profile_.String(sample.comm)),
                          .module = {},
                          .kind = FlameKind::kProcess};
    if (process.name.empty()) process.name = "[unknown]";
    return process;
  }
  static FlameFrame Mark(std::string_view mark) {
    return {
        .name = std::string(mark), .module = {}, .kind = FlameKind::kUnknown};
  }
  uint32_t Number(const FlameFrame& frame) const {
    const auto at = std::ranges::lower_bound(tree_.frames_, frame);
    return static_cast<uint32_t>(at - tree_.frames_.begin());
  }

  void AddPath(const ProfileSample& sample) {
    const size_t begin = path_frames_.size();
    path_frames_.push_back(Number(Process(sample)));
    AddStack(sample.user_state, sample.user, kMissedUserStack);
    AddStack(sample.kernel_state, sample.kernel, kMissedKernelStack);
    paths_.push_back({begin, path_frames_.size()});
  }

  void AddStack(StackState state, CallStackId stack, std::string_view missed) {
    if (IsMissed(state)) {
      path_frames_.push_back(Number(Mark(missed)));
      return;
    }
    if (LacksRoot(state)) {
      path_frames_.push_back(Number(Mark(kTruncatedMark)));
    }
    for (const FrameId frame : profile_.Stack(stack) | std::views::reverse) {
      path_frames_.push_back(numbers_[frame]);
    }
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
    tree_.leaves_.push_back({.node = open_.back(),
                             .pid = sample.pid,
                             .tid = sample.tid,
                             .count = sample.count});
  }

  void MergeLeaves() {
    auto& leaves = tree_.leaves_;
    size_t kept = 0;
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (kept != 0 && leaves[kept - 1].node == leaves[i].node &&
          leaves[kept - 1].pid == leaves[i].pid &&
          leaves[kept - 1].tid == leaves[i].tid) {
        leaves[kept - 1].count += leaves[i].count;
      } else {
        leaves[kept++] = leaves[i];
      }
    }
    leaves.resize(kept);
  }

  const Profile& profile_;
  FlameTree& tree_;
  std::vector<uint32_t> numbers_;  // by FrameId: index into frames()
  std::vector<uint32_t> path_frames_;
  std::vector<PathRange> paths_;  // by sample
  std::vector<uint32_t> open_;    // nodes of the path before
};

FlameTree::FlameTree(const Profile& profile) { Builder(profile, *this).Run(); }

}  // namespace profd
