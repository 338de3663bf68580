#include "daemon/output/folded.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <iterator>
#include <ranges>
#include <string_view>
#include <vector>

#include "daemon/output/counted_texts.h"
#include "daemon/output/safe_name.h"
#include "daemon/output/stack_state.h"

namespace profd {
namespace {

std::vector<std::string> FrameNames(const Profile& profile,
                                    const OutputOptions& options) {
  std::vector<std::string> names;
  names.reserve(profile.frames.size());
  for (const Frame& frame : profile.frames) {
    std::string& name = names.emplace_back(1, ';');
    AppendFoldedName(profile.String(frame.name), name);
    if (options.annotations && frame.kind == FrameKind::kKernel) {
      name += "_[k]";
    }
    if (options.annotations && frame.inlined) name += "_[i]";
  }
  return names;
}

void AppendOwner(const Profile& profile, const ProfileSample& sample,
                 OutputOptions::By by, std::string& out) {
  AppendFoldedName(profile.String(sample.comm), out);
  if (by == OutputOptions::By::kComm) return;
  fmt::format_to(std::back_inserter(out), "-{}", sample.pid);
  if (by == OutputOptions::By::kTid) {
    fmt::format_to(std::back_inserter(out), "/{}", sample.tid);
  }
}

// Where the lines "a COUNT" and "b COUNT" stand to each other. Differs from
// the texts' order when one text starts with the other: "f 9" stands behind
// "f !g 1".
bool LineLess(const CountedTexts& texts, const CountedTexts::Entry& a,
              const CountedTexts::Entry& b) {
  const std::string_view text_a = texts.Text(a);
  const std::string_view text_b = texts.Text(b);
  const size_t common = std::min(text_a.size(), text_b.size());
  const int order = text_a.substr(0, common).compare(text_b.substr(0, common));
  if (order != 0) return order < 0;
  return fmt::format("{} {}", text_a.substr(common), a.count) <
         fmt::format("{} {}", text_b.substr(common), b.count);
}

}  // namespace

std::string RenderFolded(const Profile& profile, const OutputOptions& options) {
  const std::vector<std::string> names = FrameNames(profile, options);
  CountedTexts lines;
  std::string& out = lines.buffer();
  const auto append_stack = [&](StackState state, CallStackId stack,
                                std::string_view missed) {
    if (IsMissed(state)) {
      out += ';';
      out += missed;
      return;
    }
    if (LacksRoot(state)) {
      out += ';';
      out += kTruncatedMark;
    }
    for (const FrameId frame : profile.Stack(stack) | std::views::reverse) {
      out += names[frame];
    }
  };
  for (const ProfileSample& sample : profile.samples) {
    AppendOwner(profile, sample, options.by, out);
    append_stack(sample.user_state, sample.user, kMissedUserStack);
    if (options.delimiter && HasBothStacks(sample)) out += ";-";
    append_stack(sample.kernel_state, sample.kernel, kMissedKernelStack);
    lines.Commit(sample.count);
  }
  lines.SortAndMerge();
  auto& entries = lines.entries();
  const auto less = [&](const auto& a, const auto& b) {
    return LineLess(lines, a, b);
  };
  if (!std::ranges::is_sorted(entries, less)) std::ranges::sort(entries, less);
  std::string result;
  result.reserve(lines.text_bytes() + entries.size() * 8);
  for (const CountedTexts::Entry& entry : entries) {
    result += lines.Text(entry);
    fmt::format_to(std::back_inserter(result), " {}\n", entry.count);
  }
  return result;
}

}  // namespace profd
