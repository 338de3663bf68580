// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/difference_page.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "daemon/output/flame_page.h"
#include "daemon/output/flame_tree.h"
#include "daemon/output/hot_spots.h"
#include "daemon/output/summary.h"

namespace profd {
namespace {

// Which of the two a sample is of, in place of its pid.
enum Side : uint32_t { kBefore = 1, kAfter = 2 };

// Both profiles in one, so that equal frames and stacks are one.
class Joiner {
 public:
  explicit Joiner(bool with_modules) : with_modules_(with_modules) {}

  void Add(const Profile& profile, Side side) {
    std::vector<FrameId> frames;
    frames.reserve(profile.frames.size());
    for (const Frame& frame : profile.frames) {
      frames.push_back(AddFrame(profile, frame));
    }
    for (const ProfileSample& sample : profile.samples) {
      builder_.AddSample(
          {.comm = builder_.Intern(profile.String(sample.comm)),
           .pid = side,
           .user_state = sample.user_state,
           .kernel_state = sample.kernel_state,
           .user = AddStack(profile.Stack(sample.user), frames),
           .kernel = AddStack(profile.Stack(sample.kernel), frames),
           .count = sample.count});
    }
  }

  Profile Finish() && { return std::move(builder_).Finish({}); }

 private:
  // What a flame graph shows of a frame, and nothing else.
  FrameId AddFrame(const Profile& profile, const Frame& frame) {
    const bool has_module = with_modules_ || !frame.kind->is_in_file;
    const std::string_view module =
        has_module ? profile.String(frame.object) : std::string_view();
    return builder_.AddFrame(
        {.name = builder_.Intern(profile.String(frame.name)),
         .object = builder_.Intern(module),
         .kind = with_modules_ ? frame.kind : WithoutFiles(frame.kind),
         .reason = frame.reason == ksym::Unresolved::kNone
                       ? ksym::Unresolved::kNone
                       : ksym::Unresolved::kNoSymbol});
  }

  CallStackId AddStack(std::span<const FrameId> leaf_first,
                       const std::vector<FrameId>& frames) {
    stack_.clear();
    for (const FrameId frame : leaf_first) stack_.push_back(frames[frame]);
    return builder_.AddStack(stack_);
  }

  ProfileBuilder builder_;
  bool with_modules_;
  std::vector<FrameId> stack_;
};

// The kind that is compared, where the title has to say it.
std::string OfKind(const SampleKind& kind) {
  if (AddsUpToThreads(kind)) return ": time of threads, " + kind.name;
  return kind.has_values ? ": " + kind.name : "";
}

}  // namespace

std::string RenderDifferenceData(const Profile& before, const Profile& after,
                                 const DifferenceNames& names) {
  Joiner joiner(HaveModules(before, after));
  joiner.Add(before, kBefore);
  joiner.Add(after, kAfter);
  const FlameTree tree(std::move(joiner).Finish());
  const Measure measure = MeasureOf(before, after);
  const SampleKind& kind = after.metadata.kinds.front();

  std::string out = "{\"title\":";
  AppendScriptText(fmt::format("{} compared with {}{}", names.after,
                               names.before, OfKind(kind)),
                   out);
  out += ",\"loss\":\"\",\n\"about\":[";
  AppendFlameFacts(
      {{"before", SummaryLine(before)},
       {"after", SummaryLine(after)},
       {"shown", fmt::format("{}, {}", kind.name, UnitName(kind))},
       {"measured in", measure.unit == MeasureUnit::kShares
                           ? std::string("shares of each profile's samples")
                           : std::string(Name(measure.unit))}},
      out);
  fmt::format_to(std::back_inserter(out),
                 "],\n\"threads\":false,\"measure\":{{\"unit\":\"{}\","
                 "\"before\":{},\"after\":{}}}",
                 measure.unit == MeasureUnit::kShares ? "" : Name(measure.unit),
                 measure.before, measure.after);
  AppendFlameUnit(kind, out);
  AppendFlameNodes(tree, out);
  std::array<std::string, 2> lists;
  std::array<uint32_t, 2> last = {};
  FlameOwners owners(tree, {});
  for (FlameTree::Leaf leaf : tree.leaves()) {
    const size_t side = leaf.pid == kAfter ? 1 : 0;
    // It was the side; the owner of both is one.
    leaf.pid = 0;
    owners.AppendLeaf(leaf, last[side], lists[side]);
  }
  owners.AppendTo(out);
  out += ",\n\"leaves\":[" + lists[1] + "],\n\"before\":[" + lists[0] + "]}";
  return out;
}

std::string RenderDifferencePage(const Profile& before, const Profile& after,
                                 const DifferenceNames& names) {
  return FlamePageWith(RenderDifferenceData(before, after, names));
}

}  // namespace profd
