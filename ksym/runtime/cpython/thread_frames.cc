// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/thread_frames.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "ksym/unwind/arch.h"

namespace ksym {
namespace {

using enum CpythonLayout::Runs;

// What glibc's struct pthread points to: the values of keys, a sequence number
// before each; and the vector of modules' variables.
constexpr uint32_t kKeysInABlock = 32;
constexpr uint32_t kMaxKeys = 1024;
constexpr uint64_t kKeyBytes = 16;
constexpr uint64_t kDtvEntryBytes = 16;
constexpr uint64_t kMaxModules = 65536;
constexpr uint64_t kNotThere = ~uint64_t{0};

// A code pointer's low bits may be a tag.
constexpr uint64_t kTag = 7;
constexpr uint64_t kNowhere = 1;  // No frame is there.
constexpr uint8_t kOwnedByGenerator = 1;
// A step adds an item, but for the begins of runs of a chain.
constexpr size_t kMaxSteps = kMaxCpythonItems + 256;
constexpr size_t kMaxLayoutFrameBytes = 112;

// A number, or some.
template <typename T>
bool ReadWords(const Memory& memory, uint64_t address, T& value) {
  return memory.Read({address}, std::as_writable_bytes(std::span(&value, 1)));
}

// Where the value of the key is that is at that address; 0: nowhere.
uint64_t KeyValue(const Memory& memory, uint64_t thread, uint64_t address) {
  uint32_t key = 0;
  if (!ReadWords(memory, address, key) || key >= kMaxKeys) return 0;
  uint64_t block = thread + kGlibcKeys;
  const uint64_t index = key / kKeysInABlock;
  if (index != 0 &&
      (!ReadWords(memory, thread + kGlibcKeyBlocks + 8 * index, block) ||
       block == 0)) {
    return 0;
  }
  return block + kKeyBytes * (key % kKeysInABlock) + 8;
}

// The begin of the module's variables plus an offset, which are at `slot`.
uint64_t InModule(const Memory& memory, uint64_t thread, uint64_t slot) {
  std::array<uint64_t, 2> module = {};
  uint64_t vector = 0;
  uint64_t block = 0;
  if (!ReadWords(memory, slot, module) || module[0] >= kMaxModules ||
      !ReadWords(memory, thread + kGlibcDtv, vector) ||
      !ReadWords(memory, vector + kDtvEntryBytes * module[0], block) ||
      block == kNotThere || block == 0) {
    return 0;
  }
  return block + module[1];
}

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
    uint64_t state = StateBy(interpreter_.threads[0]);
    if (state == 0) state = StateBy(interpreter_.threads[1]);
    uint64_t first = 0;
    if (state == 0 ||
        !ReadWords(memory_, state + layout_.thread_frame, first)) {
      return false;
    }
    if (layout_.runs == kToEntry) {
      link_ = first;
    } else if (layout_.has_cframe) {
      if (!BeginAtLink(first)) return false;
    } else {
      frame_ = first;
    }
    return frame_ != 0 || link_ != 0;
  }

  CpythonFrames Walk() {
    for (size_t i = 0; i < kMaxSteps; ++i) {
      // For the frame and the end of its run, torn or not.
      if (items_ >= kMaxCpythonItems - 1) break;
      if (GoOn() == Next::kEnd) {
        return {.runs = std::move(runs_), .is_cut = false};
      }
    }
    // The run that the bound cut off has no end.
    EndRun(0, true);
    return {.runs = std::move(runs_), .is_cut = true};
  }

 private:
  enum class Next : uint8_t { kMore, kEnd };

  // The innermost frame by the innermost call's _PyCFrame. The call before
  // tells what its run comes from: a call that begins has put neither there
  // yet, but whatever lay there before.
  bool BeginAtLink(uint64_t link) {
    uint64_t before = 0;
    if (!ReadWords(memory_, link + layout_.cframe_frame, frame_) ||
        !ReadWords(memory_, link + layout_.cframe_previous, before)) {
      return false;
    }
    uint64_t came_from = kNowhere;
    if (before == 0 || before % 8 != 0 ||
        !ReadWords(memory_, before + layout_.cframe_frame, came_from)) {
      came_from = kNowhere;
    }
    next_first_ = came_from;
    return true;
  }

  uint64_t Moved(ElfAddress address) const {
    return thread_.load_bias + address.value;
  }

  uint64_t VariableBy(const CpythonThreadPlace& place) const {
    const uint64_t thread = thread_.pointer.value;
    const uint64_t address = Moved(place.address);
    const auto distance = static_cast<uint64_t>(int64_t{place.distance});
    using enum CpythonThreadPlace::Kind;
    switch (place.kind) {
      case kNone:
        return 0;
      case kKey:
        return KeyValue(memory_, thread, address);
      case kGlobal:
        return address;
      case kNearThread:
        return thread + distance;
      case kInModule: {
        const uint64_t block = InModule(memory_, thread, address);
        return block == 0 ? 0 : block + distance;
      }
      case kByOffset: {
        uint64_t offset = 0;
        if (!ReadWords(memory_, address, offset)) return 0;
        return thread + offset + distance;
      }
    }
    return 0;
  }

  // The address of the thread's state; 0: there is none.
  uint64_t StateBy(const CpythonThreadPlace& place) const {
    const uint64_t variable = VariableBy(place);
    uint64_t state = 0;
    uint64_t id = 0;
    if (variable == 0 || !ReadWords(memory_, variable, state) || state == 0 ||
        state % 8 != 0 || !ReadWords(memory_, state + layout_.thread_id, id)) {
      return 0;
    }
    // This rejects wrong offsets and another thread's state.
    return id == thread_.pointer.value ? state : 0;
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
    if (!ReadWords(memory_, code + layout_.code_size, units) ||
        !ReadWords(memory_, code + layout_.code_first_traceable,
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
    return ReadWords(memory_, code + CpythonOffsets::kType, type) &&
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
        !ReadWords(memory_, link + layout_.cframe_frame, frame_) ||
        !ReadWords(memory_, link + layout_.cframe_previous, link_)) {
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
