// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/stack_feeder.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "daemon/history/part_adder.h"
#include "daemon/history/rare_callees.h"
#include "daemon/output/stack_state.h"

namespace profd::fleet {
namespace {

using ksym::Status;

// The state that a mark is shown for; nothing for a text that is none of ours.
struct MarkState {
  StackOf of = StackOf::kUser;
  StackState state = StackState::kNone;
};
std::optional<MarkState> StateOfMark(std::string_view mark, bool is_kernel) {
  for (const StackOf of : {StackOf::kUser, StackOf::kKernel}) {
    if (is_kernel && of == StackOf::kUser) continue;
    for (auto state = StackState::kNone; state <= StackState::kBeyondCopy;
         state = static_cast<StackState>(static_cast<uint8_t>(state) + 1)) {
      const auto place = MarkOf(state, of);
      if (place && kStackMarks[*place] == mark) {
        return MarkState{.of = of, .state = state};
      }
    }
  }
  return std::nullopt;
}

// The places of code that has no name, as the service calls them.
bool IsNameless(std::string_view name, std::string_view module) {
  if (name == "[unknown]") return true;
  if (!name.starts_with('[') || !name.ends_with(']')) return false;
  const std::string_view inner = name.substr(1, name.size() - 2);
  const std::string_view file = module.substr(module.rfind('/') + 1);
  return name == module || inner == file;
}

}  // namespace

FrameId StackFeeder::FrameOf(const StackFrame& frame) {
  const FrameKind* const kind = frame.kind == nullptr ? &kJitFrame : frame.kind;
  const bool is_missing =
      frame.kind == nullptr || IsNameless(frame.name, frame.module);
  return builder_.AddFrame({.name = builder_.Intern(frame.name),
                            .object = builder_.Intern(frame.module),
                            .kind = kind,
                            .reason = is_missing ? ksym::Unresolved::kNoSymbol
                                                 : ksym::Unresolved::kNone});
}

Status StackFeeder::Add(const StackSum& sum,
                        std::span<const StackFrame> frames) {
  if (stacks_ > 0 && (stacks_ >= kMaxBatchStacks ||
                      frames_ + frames.size() > kMaxBatchFrames)) {
    if (auto flushed = Flush(); !flushed) return flushed;
  }
  StackState user_state = StackState::kNone;
  StackState kernel_state = StackState::kNone;
  std::vector<FrameId> user, kernel;
  for (const StackFrame& frame : frames) {
    // A waker's frames stand behind the kernel's, whatever their kind.
    const bool is_kernel =
        !kernel.empty() || (frame.kind != nullptr && frame.kind->is_kernel);
    StackState& state = is_kernel ? kernel_state : user_state;
    std::vector<FrameId>& side = is_kernel ? kernel : user;
    const auto mark = frame.kind == nullptr ? StateOfMark(frame.name, is_kernel)
                                            : std::nullopt;
    if (mark && (mark->of == StackOf::kKernel ? kernel : user).empty()) {
      (mark->of == StackOf::kKernel ? kernel_state : user_state) = mark->state;
      continue;
    }
    if (state == StackState::kNone) state = StackState::kWhole;
    side.push_back(FrameOf(frame));
  }
  std::ranges::reverse(user);
  std::ranges::reverse(kernel);
  ++stacks_;
  frames_ += frames.size();
  accounting_.taken += sum.count;
  accounting_.emitted += sum.count;
  builder_.AddSample({.comm = builder_.Intern(sum.command),
                      .user_state = user_state,
                      .kernel_state = kernel_state,
                      .parked = sum.parked,
                      .user = builder_.AddStack(user),
                      .kernel = builder_.AddStack(kernel),
                      .count = sum.count,
                      .value = sum.value});
  return {};
}

Status StackFeeder::AddUnshown(const StackSum& sum) {
  const std::array<StackFrame, 1> frame = {
      {{.kind = nullptr, .name = history::kRareCallees, .module = {}}}};
  return Add(sum, frame);
}

Status StackFeeder::Flush() {
  CaptureMetadata metadata;
  metadata.kinds = {terms_.kind};
  // The time is known once, however many parts it comes in: the first has all
  // of it, and the others follow.
  metadata.start_unix_ns =
      terms_.from_unix_ns + (has_flushed_ ? terms_.known_ns : 0);
  metadata.duration_ns = has_flushed_ ? 0 : terms_.known_ns;
  builder_.Add(std::exchange(accounting_, {}));
  const Profile profile =
      std::exchange(builder_, ProfileBuilder()).Finish(std::move(metadata));
  has_flushed_ = true;
  stacks_ = frames_ = 0;
  history::PartAdder part;
  if (!part.Add(profile, {.boot = {}, .name = {}})) {
    return ksym::Fail(ksym::ErrorCode::kLimit,
                      "the stacks' names are too long: ask for less");
  }
  return sink_(part.tables());
}

Status StackFeeder::Finish() {
  if (stacks_ == 0 && has_flushed_) return {};
  return Flush();
}

}  // namespace profd::fleet
