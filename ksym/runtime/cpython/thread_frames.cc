// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/thread_frames.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "ksym/runtime/cpython/thread_states.h"

namespace ksym {
namespace {

using enum CpythonLayout::Runs;

// A code pointer's low bits may be a tag.
constexpr uint64_t kTag = 7;
constexpr uint64_t kNowhere = 1;  // No frame is there.
constexpr uint8_t kOwnedByGenerator = 1;
// A step adds an item, but for the begins of runs of a chain.
constexpr size_t kMaxSteps = kMaxCpythonItems + 256;
constexpr size_t kMaxLayoutFrameBytes = 112;

class ThreadWalk {
 public:
  ThreadWalk(const Memory& memory, const CpythonInterpreter& interpreter,
             const CpythonThread& thread)
      : memory_(memory),
        interpreter_(interpreter),
        layout_(interpreter.layout),
        thread_(thread) {}

  // False: the thread has no frames of the interpreter.
  bool Begin() {
    const CpythonThreadStates states =
        FindThreadStates(memory_, interpreter_, thread_);
    if (states.is_unknown) {
      EndRun(0, true);
      return true;
    }
    outer_ = states.outer;
    // A call of the inner interpreter that begins has no frame yet.
    return states.inner != 0 && (BeginAt(states.inner) || BeginOuter());
  }

  CpythonFrames Walk() {
    for (size_t i = 0; i < kMaxSteps; ++i) {
      // For the frame and the end of its run, torn or not.
      if (items_ >= kMaxCpythonItems - 1) break;
      if (GoOn() == Next::kEnd && !BeginOuter()) {
        return {.runs = std::move(runs_), .is_cut = false};
      }
    }
    // The run that the bound cut off has no end.
    EndRun(0, true);
    return {.runs = std::move(runs_), .is_cut = true};
  }

 private:
  enum class Next : uint8_t { kMore, kEnd };

  bool BeginAt(uint64_t state) {
    uint64_t first = 0;
    if (!memory_.ReadValue({state + layout_.thread_frame}, first)) return false;
    if (layout_.runs == kToEntry) {
      link_ = first;
    } else if (layout_.has_cframe) {
      if (!BeginAtLink(first)) return false;
    } else {
      frame_ = first;
    }
    return frame_ != 0 || link_ != 0;
  }

  // The frames of the interpreter that the thread ran the other one inside of.
  bool BeginOuter() {
    const uint64_t state = std::exchange(outer_, 0);
    if (state == 0) return false;
    next_first_.reset();
    run_frame_ = 0;
    return BeginAt(state);
  }

  // The innermost frame by the innermost call's _PyCFrame. The call before
  // tells what its run comes from: a call that begins has put neither there
  // yet, but whatever lay there before.
  bool BeginAtLink(uint64_t link) {
    uint64_t before = 0;
    if (!memory_.ReadValue({link + layout_.cframe_frame}, frame_) ||
        !memory_.ReadValue({link + layout_.cframe_previous}, before)) {
      return false;
    }
    uint64_t came_from = kNowhere;
    if (before == 0 || before % 8 != 0 ||
        !memory_.ReadValue({before + layout_.cframe_frame}, came_from)) {
      came_from = kNowhere;
    }
    next_first_ = came_from;
    return true;
  }

  uint64_t Moved(ElfAddress address) const {
    return thread_.load_bias + address.value;
  }

  // One frame, or the begin or end of a run.
  Next GoOn() {
    if (frame_ == 0) return NextLink();
    if (frame_ % 8 != 0 || layout_.frame_bytes > kMaxLayoutFrameBytes ||
        !memory_.Read({frame_}, std::span(bytes_).first(layout_.frame_bytes))) {
      return Tear();
    }
    return layout_.runs == kEach ? TakeObject() : TakeFrame();
  }

  template <typename T>
  T Field(uint16_t offset) const {
    T value = 0;
    if (offset + sizeof(T) <= layout_.frame_bytes) {
      std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    }
    return value;
  }

  // Up to 3.10 each frame is a run.
  Next TakeObject() {
    const auto code = Field<uint64_t>(layout_.frame_code);
    auto index = Field<int32_t>(layout_.frame_instruction);
    if (!interpreter_.frame_type ||
        Field<uint64_t>(CpythonOffsets::kType) !=
            Moved(*interpreter_.frame_type) ||
        !IsCode(code)) {
      return Tear();
    }
    if (layout_.instruction == CpythonLayout::Instruction::kBytes) index >>= 1;
    // Before the first instruction it is at the function's begin.
    Push({code}, std::max(index, 0));
    EndRun(frame_ + interpreter_.frame_word.offset, false);
    return GoTo(Field<uint64_t>(layout_.frame_previous));
  }

  Next TakeFrame() {
    const auto previous = Field<uint64_t>(layout_.frame_previous);
    const auto owner = Field<uint8_t>(layout_.frame_owner);
    if (layout_.runs == kToShim && owner == layout_.shim_owner) {
      if (next_first_ && *next_first_ != previous) return Tear();
      next_first_.reset();
      if (!run_.empty()) EndRun(frame_, false);
      return GoTo(previous);
    }
    if (!TakeInstruction(owner)) return Tear();
    if (layout_.runs == kToEntry &&
        Field<uint8_t>(layout_.frame_is_entry) != 0) {
      EndRun(anchor_, false);
      next_first_ = previous;
      frame_ = 0;
      return Next::kMore;
    }
    if (previous == 0) return Tear();
    frame_ = previous;
    return Next::kMore;
  }

  // Writes the frame down, unless it has not begun; false: it is none, or none
  // that could be there.
  bool TakeInstruction(uint8_t owner) {
    const uint64_t code = Field<uint64_t>(layout_.frame_code) & ~kTag;
    if (!IsCode(code)) return false;
    uint64_t units = 0;
    uint32_t first_traceable = 0;
    if (!memory_.ReadValue({code + layout_.code_size}, units) ||
        !memory_.ReadValue({code + layout_.code_first_traceable},
                           first_traceable)) {
      return false;
    }
    const auto index =
        static_cast<int64_t>(Field<uint64_t>(layout_.frame_instruction) - code -
                             layout_.code_units) >>
        1;
    if (index < -1 || index >= static_cast<int64_t>(units & 0xffffffff)) {
      return false;
    }
    if (index >= int64_t{first_traceable} || owner == kOwnedByGenerator) {
      Push({code}, index);
      return true;
    }
    // With a _PyCFrame it calls nothing before it has begun, but a call of the
    // loop that begins has what was there before as its first frame.
    return !layout_.has_cframe || run_.empty();
  }

  bool IsCode(uint64_t code) const {
    uint64_t type = 0;
    return memory_.ReadValue({code + CpythonOffsets::kType}, type) &&
           type == Moved(interpreter_.code_type);
  }

  Next GoTo(uint64_t previous) {
    frame_ = previous;
    return previous == 0 ? Next::kEnd : Next::kMore;
  }

  void Push(Address code, int64_t index) {
    run_.push_back({.code = code, .index = static_cast<uint32_t>(index)});
    ++items_;
  }

  void EndRun(uint64_t anchor, bool is_torn) {
    runs_.push_back({.frames = std::exchange(run_, {}),
                     .anchor = anchor,
                     .is_torn = is_torn});
    ++items_;
  }

  // A chain's next run is known all the same.
  Next Tear() {
    EndRun(anchor_, true);
    frame_ = 0;
    next_first_.reset();
    return link_ == 0 ? Next::kEnd : Next::kMore;
  }

  // There is no next link, so that the last run should come from nowhere.
  Next EndLinks() {
    if (next_first_.value_or(0) != 0 && !runs_.empty()) {
      runs_.back().is_torn = true;
    }
    return Next::kEnd;
  }

  // Begins the run of the chain's next link, which lies behind the one before.
  Next NextLink() {
    if (layout_.runs != kToEntry) return Next::kEnd;
    const uint64_t link = link_;
    if (link == 0 || link % 8 != 0 || link <= anchor_ ||
        !memory_.ReadValue({link + layout_.cframe_frame}, frame_) ||
        !memory_.ReadValue({link + layout_.cframe_previous}, link_)) {
      return EndLinks();
    }
    anchor_ = link;
    // Where nothing runs yet, or ever does, as in the thread state's own.
    if (frame_ == 0) return link_ == 0 ? EndLinks() : Next::kMore;
    // A call of the loop that has not pushed its frame yet, or has popped it,
    // still has its caller's. Only a whole run says what the next one begins
    // with.
    if (frame_ == run_frame_) {
      runs_.resize(std::min(run_count_, runs_.size()));
    } else if (next_first_ && *next_first_ != frame_ && !runs_.empty()) {
      runs_.back().is_torn = true;
    }
    next_first_.reset();
    run_frame_ = frame_;
    run_count_ = runs_.size();
    return Next::kMore;
  }

  const Memory& memory_;
  const CpythonInterpreter& interpreter_;
  const CpythonLayout& layout_;
  const CpythonThread thread_;
  std::vector<CpythonRun> runs_;
  std::vector<CpythonFrame> run_;  // that has not ended
  size_t items_ = 0;
  std::array<std::byte, kMaxLayoutFrameBytes> bytes_ = {};  // of the frame
  uint64_t outer_ = 0;   // the state whose frames come then; 0: none
  uint64_t frame_ = 0;   // the next one; 0: the run has ended
  uint64_t link_ = 0;    // the next _PyCFrame of a chain; 0: none
  uint64_t anchor_ = 0;  // of the run, where it is known before its end
  // Where the run came from: a chain's next one begins there.
  std::optional<uint64_t> next_first_;
  // How it was when a chain's run began.
  uint64_t run_frame_ = 0;
  size_t run_count_ = 0;
};

}  // namespace

std::optional<CpythonFrames> ReadCpythonFrames(
    const Memory& memory, const CpythonInterpreter& interpreter,
    const CpythonThread& thread) {
  ThreadWalk walk(memory, interpreter, thread);
  if (thread.pointer.value == 0 || !walk.Begin()) return std::nullopt;
  return walk.Walk();
}

}  // namespace ksym
