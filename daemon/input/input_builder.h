// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd {

// A frame as a file tells it. What a format does not know is empty.
struct InputFrame {
  std::string_view name = {};
  std::string_view object = {};
  std::string_view build_id = {};
  std::string_view file = {};
  uint32_t line = 0;
  std::string_view function = {};  // of a runtime's frame, as in Frame
  uint32_t first_line = 0;
  bool line_is_near = false;
  const FrameKind* kind = &kUserFrame;
  ksym::Unresolved reason = ksym::Unresolved::kNone;
  uint64_t address = 0;
  uint64_t file_offset = 0;
  uint64_t symbol_offset = 0;
};

struct InputSample {
  std::string_view comm = {};
  uint32_t pid = 0;
  uint32_t tid = 0;
  std::string_view cgroup = {};        // its path; empty: not known
  LabelSetId labels = 0;               // of AddLabels()
  std::span<const FrameId> user = {};  // leaf first
  std::span<const FrameId> kernel = {};
  StackState user_state = StackState::kNone;
  StackState kernel_state = StackState::kNone;
  SampleKindId kind = 0;  // below kMaxSampleKinds; see Finish()'s metadata
  bool parked = false;    // see MarkParked()
  uint64_t count = 0;
  uint64_t value = 0;
};

// Puts a Profile together out of what a reader understands, and keeps account
// of what it does not: one bad line costs itself only.
class InputBuilder {
 public:
  // Frames as a stack's text has them: a word in brackets is no function.
  static ksym::Unresolved ReasonOf(std::string_view name);

  // Whether a file's name is one of the kernel's or of its modules:
  // "[kernel.kallsyms]_text", "[ext4]", "/lib/modules/.../ext4.ko", a vmlinux.
  static bool IsKernelModule(std::string_view path);

  // The kind of a frame of a format that tells none: what is in no file and has
  // the name of a divider is one, and else it is `kind`.
  static const FrameKind* KindOf(const InputFrame& frame) {
    const FrameKind* divider = FindDivider(frame.name);
    return divider != nullptr && frame.object.empty() ? divider : frame.kind;
  }

  // Names and paths are cut as those of a capture are; see BoundName().
  FrameId AddFrame(const InputFrame& frame);
  // Whether a format whose labels are anybody's has this one of us.
  static bool IsOurLabel(std::string_view key);
  // In any order; those beyond kMaxLabels are left out, with a warning, and
  // keys and values are cut as names are.
  LabelSetId AddLabels(LabelSet labels);
  // The state of a stack that no format tells more of.
  static StackState StateOf(std::span<const FrameId> stack) {
    return stack.empty() ? StackState::kNone : StackState::kWhole;
  }
  // Samples of count 0 without a value are none.
  void Add(const InputSample& sample);
  // A part that could not be understood; `where` as in "line 12".
  void LeaveOut(std::string_view where, std::string_view why);

  static constexpr size_t kMaxLabels = 64;

  bool empty() const { return builder_.distinct_samples() == 0; }
  // The sum of the counts, until 2^63: beyond it Finish() fails, as it does
  // where the values of one kind add up to more.
  uint64_t total() const { return total_; }

  // `accounting`: of the capture, where the file has it; else each sample was
  // taken and emitted. Fails with kInvalid when there is no sample, saying what
  // was wrong with the first part that was left out, and with kLimit.
  ksym::Result<Profile> Finish(CaptureMetadata metadata,
                               const Accounting* accounting = nullptr) &&;

 private:
  StringId InternName(std::string_view name);
  StringId InternPath(std::string_view path);

  ProfileBuilder builder_;
  std::string room_;  // of a name that is cut
  uint64_t total_ = 0;
  std::array<uint64_t, kMaxSampleKinds> values_ = {};  // their sums, by kind
  uint64_t frames_ = 0;
  uint64_t labels_left_out_ = 0;
  bool too_many_ = false;
  uint64_t left_out_ = 0;
  std::string first_left_out_;
};

}  // namespace profd
