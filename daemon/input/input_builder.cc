// SPDX-License-Identifier: Apache-2.0
#include "daemon/input/input_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "ksym/base/bounded_name.h"

namespace profd {
namespace {

// What pprof and most other readers can add up. Values become counts where one
// kind is shown.
constexpr uint64_t kMaxSamples = std::numeric_limits<int64_t>::max();
// For all stacks together, 1 GiB: a pprof profile of a few megabytes can have
// any number.
constexpr uint64_t kMaxFrames = uint64_t{1} << 28;

// In a profile that tells the files of functions, named code without one was
// made at run time.
void FindGeneratedCode(Profile& profile) {
  const bool has_files =
      std::ranges::any_of(profile.frames, [](const Frame& frame) {
        return frame.kind->is_in_file && frame.object != 0;
      });
  if (!has_files) return;
  for (Frame& frame : profile.frames) {
    const bool lacks_file = frame.kind->is_in_file && frame.object == 0 &&
                            frame.reason == ksym::Unresolved::kNone;
    if (lacks_file && !frame.kind->is_inlined) frame.kind = &kJitFrame;
  }
}

}  // namespace

ksym::Unresolved InputBuilder::ReasonOf(std::string_view name) {
  const bool is_mark =
      name.size() > 2 && name.front() == '[' && name.back() == ']';
  return is_mark ? ksym::Unresolved::kNoSymbol : ksym::Unresolved::kNone;
}

bool InputBuilder::IsKernelModule(std::string_view path) {
  if (path.starts_with("[kernel") || path.starts_with("[guest.kernel") ||
      path.ends_with(".ko") || path.ends_with(".ko]") ||
      path.ends_with("/vmlinux")) {
    return true;
  }
  // Not what /proc/PID/maps and profilers put in brackets as well.
  constexpr std::string_view kOfUser[] = {
      "[vdso]",    "[vsyscall]", "[heap]",   "[anon]",
      "[unknown]", "[replaced]", "[uprobes]"};
  return path.size() > 2 && path.front() == '[' && path.back() == ']' &&
         !path.starts_with("[stack") && !path.starts_with("[anon") &&
         std::ranges::find(kOfUser, path) == std::end(kOfUser);
}

StringId InputBuilder::InternName(std::string_view name) {
  return builder_.Intern(ksym::BoundName(name, room_));
}

StringId InputBuilder::InternPath(std::string_view path) {
  return builder_.Intern(ksym::BoundPath(path, room_));
}

FrameId InputBuilder::AddFrame(const InputFrame& frame) {
  return builder_.AddFrame({.name = InternName(frame.name),
                            .object = InternPath(frame.object),
                            .build_id = InternName(frame.build_id),
                            .kind = frame.kind,
                            .reason = frame.reason,
                            .address = frame.address,
                            .file_offset = frame.file_offset,
                            .symbol_offset = frame.symbol_offset,
                            .file = InternPath(frame.file),
                            .line = frame.line,
                            .function = InternName(frame.function),
                            .first_line = frame.first_line,
                            .line_is_near = frame.line_is_near});
}

bool InputBuilder::IsOurLabel(std::string_view key) {
  return key == kNamespaceLabel || key == kPodLabel ||
         key == kPodContainerLabel || key == kContainerLabel ||
         key == kServiceLabel;
}

LabelSetId InputBuilder::AddLabels(LabelSet labels) {
  if (labels.empty()) return 0;
  if (labels.size() > kMaxLabels) {
    labels_left_out_ += labels.size() - kMaxLabels;
    labels.resize(kMaxLabels);
  }
  for (Label& label : labels) {
    label.key = ksym::BoundName(std::string(label.key), room_);
    label.value = ksym::BoundName(std::string(label.value), room_);
  }
  Normalize(labels);
  return builder_.AddLabels(labels);
}

void InputBuilder::Add(const InputSample& sample) {
  if (sample.count == 0 && sample.value == 0) return;
  uint64_t& values = values_[sample.kind];
  if (sample.count > kMaxSamples - total_ ||
      sample.value > kMaxSamples - values) {
    too_many_ = true;
    return;
  }
  frames_ += sample.user.size() + sample.kernel.size();
  // Finish() refuses all of it; until then no more is kept.
  if (frames_ > kMaxFrames) return;
  total_ += sample.count;
  values += sample.value;
  builder_.AddSample({.comm = InternName(sample.comm),
                      .pid = sample.pid,
                      .tid = sample.tid,
                      .cgroup = InternPath(sample.cgroup),
                      .labels = sample.labels,
                      .user_state = sample.user_state,
                      .kernel_state = sample.kernel_state,
                      .kind = sample.kind,
                      .parked = sample.parked,
                      .user = builder_.AddStack(sample.user),
                      .kernel = builder_.AddStack(sample.kernel),
                      .count = sample.count,
                      .value = sample.value});
}

void InputBuilder::LeaveOut(std::string_view where, std::string_view why) {
  if (left_out_++ == 0) first_left_out_ = fmt::format("{}: {}", where, why);
}

ksym::Result<Profile> InputBuilder::Finish(CaptureMetadata metadata,
                                           const Accounting* accounting) && {
  if (too_many_) {
    return ksym::Fail(ksym::ErrorCode::kLimit,
                      "its counts or values add up to more than 2^63");
  }
  if (frames_ > kMaxFrames) {
    return ksym::Fail(ksym::ErrorCode::kLimit,
                      "its stacks have more than 2^28 frames");
  }
  if (empty()) {
    return ksym::Fail(
        ksym::ErrorCode::kInvalid,
        left_out_ == 0 ? "there is no sample in it" : first_left_out_);
  }
  if (left_out_ != 0) {
    metadata.warnings.push_back(
        fmt::format("{} part{} could not be understood and {} left out; {}",
                    left_out_, left_out_ == 1 ? "" : "s",
                    left_out_ == 1 ? "is" : "are", first_left_out_));
  }
  if (labels_left_out_ != 0) {
    metadata.warnings.push_back(fmt::format(
        "{} label{} left out: a sample has {} at the most", labels_left_out_,
        labels_left_out_ == 1 ? " is" : "s are", kMaxLabels));
  }
  if (accounting != nullptr) {
    builder_.Add(*accounting);
  } else {
    Accounting all;
    all.taken = total_;
    all.emitted = total_;
    builder_.Add(all);
  }
  Profile profile = std::move(builder_).Finish(std::move(metadata));
  FindGeneratedCode(profile);
  return profile;
}

}  // namespace profd
