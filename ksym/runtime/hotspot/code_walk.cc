// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/hotspot/code_walk.h"

#include <iterator>
#include <span>
#include <utility>

#include "ksym/runtime/hotspot/frame_code.h"

namespace ksym {
namespace {

constexpr uint64_t kWord = 8;
// Where the interpreter's frame has what, below its frame pointer.
constexpr uint64_t kSenderStackPointer = 8;
constexpr uint64_t kInterpretedMethod = 24;
// Arguments that a caller's frame was made larger by: 255 words, and room.
constexpr uint64_t kMaxArgumentBytes = 4096;

uint32_t LeftBytes(HotspotFrameCode::Left left) {
  return left == HotspotFrameCode::Left::kAddress ? kWord : 2 * kWord;
}

// How many bytes of the frame are left where the CPU is in compiled code; its
// frame pointer is saved while there are 16 or more.
uint32_t FrameBytesAt(const HotspotFrameCode& code, const HotspotBlob& blob,
                      uint64_t place) {
  const auto left = code.LeftAtEnd();
  if (!left && place >= blob.frame_complete) return blob.frame_bytes;
  return LeftBytes(left.value_or(code.LeftAtBegin()));
}

}  // namespace

const HotspotBlob* HotspotCode::BlobAt(const Memory& memory, Address code) {
  const HotspotHeap* heap = FindHotspotHeap(heaps_, code);
  if (heap == nullptr) return nullptr;
  const auto behind = blobs_.upper_bound(code.value);
  if (behind != blobs_.begin()) {
    const HotspotBlob& before = std::prev(behind)->second;
    if (code.value < before.code_end.value) return &before;
  }
  const auto blob = ReadHotspotBlob(memory, layout_, *heap, code);
  if (!blob) return nullptr;
  if (blobs_.size() >= kMaxBlobs) blobs_.clear();
  return &blobs_.insert_or_assign(blob->code_begin.value, *blob).first->second;
}

// One step, from one frame.
class HotspotSteps::OneStep {
 public:
  OneStep(HotspotSteps& steps, const CodeFrame& frame, const ReadWord& stack)
      : layout_(steps.code_.layout()),
        memory_(steps.memory_),
        thread_(steps.thread_),
        frame_(frame),
        stack_(stack) {
    noted_.number = frame.number;
  }

  CodeStep Leave(const HotspotBlob& blob) {
    // What the CPU was in the middle of is in its code.
    if (frame_.is_interrupted && !code_.Read(memory_, frame_.at)) {
      return std::unexpected(StackEnd::kNoTable);
    }
    noted_.code = blob.address;
    switch (blob.kind) {
      case HotspotBlob::Kind::kCompiled:
        return LeaveCompiled(blob);
      case HotspotBlob::Kind::kInterpreter:
        return LeaveInterpreter();
      case HotspotBlob::Kind::kVtable:
        return To(frame_.sp + kWord, std::nullopt);
      default:
        break;
    }
    const bool has_size =
        blob.frame_bytes >= 2 * kWord && blob.frame_bytes < kMaxFrameBytes;
    return has_size ? LeaveSizedFrame(blob, frame_.at) : LeaveStub();
  }

  const HotspotFrame& noted() const { return noted_; }

 private:
  // To the caller, whose address is in the word below `cfa`, with the frame
  // pointer that is at `fp_at`; nothing: it is as it was.
  CodeStep To(uint64_t cfa, std::optional<uint64_t> fp_at) const {
    CodeCaller caller = {.ip = {}, .sp = cfa, .fp = {}};
    const auto ip = stack_(cfa - kWord);
    if (!ip) return std::unexpected(StackEnd::kBadRead);
    caller.ip = {*ip};
    if (fp_at) {
      caller.fp = stack_(*fp_at);
      if (!caller.fp) return std::unexpected(StackEnd::kBadRead);
    }
    return caller;
  }

  CodeStep LeaveSizedFrame(const HotspotBlob& blob, Address at) const {
    uint32_t bytes = blob.frame_bytes;
    const uint64_t place = at.value - blob.code_begin.value;
    if (frame_.is_interrupted) {
      // The frame is there, and its pointer not yet.
      if (place < blob.frame_complete && code_.SavesFramePointer()) {
        return To(frame_.sp + bytes, std::nullopt);
      }
      bytes = FrameBytesAt(code_, blob, place);
    }
    if (bytes < kWord || bytes > kMaxFrameBytes) {
      return std::unexpected(StackEnd::kUnsupported);
    }
    const uint64_t cfa = frame_.sp + bytes;
    return To(cfa, bytes >= 2 * kWord ? std::optional(cfa - 2 * kWord)
                                      : std::nullopt);
  }

  // A frame that was deoptimized returns elsewhere: where it would have
  // returned to is in it.
  Address UndoDeopt(const HotspotBlob& blob) const {
    const uint64_t returns_to = frame_.at.value + 1;
    const bool is_deoptimized =
        !frame_.is_interrupted && blob.original_pc < kMaxFrameBytes &&
        ((blob.deopt != 0 && blob.deopt == returns_to) ||
         (blob.deopt_mh != 0 && blob.deopt_mh == returns_to));
    if (!is_deoptimized) return frame_.at;
    const auto original = stack_(frame_.sp + blob.original_pc);
    // Within the code, which the frame's place is.
    if (!original || *original - blob.code_begin.value >
                         frame_.at.value - blob.code_begin.value) {
      return frame_.at;
    }
    return {*original - 1};
  }

  // The code can be that which the thread was in.
  bool IsCalledFrom(Address at) const {
    return thread_ == HotspotThread::kIsThere || frame_.is_interrupted ||
           FollowsCall(memory_, at + 1);
  }

  CodeStep LeaveCompiled(const HotspotBlob& blob) {
    const Address at = UndoDeopt(blob);
    if (!IsCalledFrom(at)) return std::unexpected(StackEnd::kNoTable);
    noted_.kind = HotspotFrame::Kind::kCompiled;
    noted_.tag = blob.compile_id;
    noted_.place = static_cast<uint32_t>(at.value - blob.code_begin.value);
    return LeaveSizedFrame(blob, at);
  }

  // That leads through the frame; nothing: it cannot be one.
  std::optional<uint64_t> FramePointer() const {
    const auto fp = frame_.fp;
    const bool is_one = fp && *fp >= frame_.sp && *fp % kWord == 0 &&
                        *fp - frame_.sp <= kMaxFrameBytes;
    return is_one ? fp : std::nullopt;
  }

  // False: the frame has no method.
  bool NoteInterpreted(uint64_t fp) {
    const auto method = stack_(fp - kInterpretedMethod);
    auto bytecode = stack_(fp - layout_.interpreter_bcp);
    if (!method || !bytecode) return false;
    uint64_t code = 0;
    uint16_t size = 0;
    if (!ReadNumber({*method + layout_.method_const_method}, code) ||
        !ReadNumber({code + layout_.const_method_code_size}, size)) {
      return false;
    }
    const uint64_t bytecodes = code + layout_.const_method_bytes;
    const size_t in = HotspotBytecodeRegister();
    if (frame_.is_interrupted && frame_.registers.size() > in &&
        frame_.registers[in] - bytecodes < size) {
      bytecode = frame_.registers[in];
    }
    const uint64_t index = *bytecode - bytecodes;
    // A native method has none: 0 stands there, or where they would be.
    if (*bytecode != 0 && index >= size && (index | size) != 0) return false;
    noted_.kind = HotspotFrame::Kind::kInterpreted;
    noted_.code = {*method};
    noted_.tag = static_cast<uint16_t>(code >> 3);
    noted_.place = *bytecode != 0 ? static_cast<uint32_t>(index) : 0;
    return true;
  }

  CodeStep LeaveInterpreter() {
    const auto fp = FramePointer();
    if (!fp || !NoteInterpreted(*fp)) {
      return std::unexpected(StackEnd::kNoTable);
    }
    const auto sender = stack_(*fp - kSenderStackPointer);
    if (!sender) return std::unexpected(StackEnd::kBadRead);
    CodeStep caller = To(*fp + 2 * kWord, fp);
    // A compiled caller's frame ends where it was before the arguments.
    if (caller && *sender - caller->sp <= kMaxArgumentBytes &&
        *sender % kWord == 0) {
      caller->sp = *sender;
    }
    return caller;
  }

  // Without a size of its frame.
  CodeStep LeaveStub() const {
    if (frame_.is_interrupted) {
      const auto left = code_.LeftInStub();
      if (left == HotspotFrameCode::Left::kAddress) {
        return To(frame_.sp + kWord, std::nullopt);
      }
      if (left) return To(frame_.sp + 2 * kWord, frame_.sp);
    }
    const auto fp = FramePointer();
    if (!fp) return std::unexpected(StackEnd::kNoTable);
    return To(*fp + 2 * kWord, fp);
  }

  template <typename Number>
  bool ReadNumber(Address address, Number& number) const {
    return memory_.Read(address, std::as_writable_bytes(std::span(&number, 1)));
  }

  const HotspotLayout& layout_;
  const Memory& memory_;
  HotspotThread thread_;
  const CodeFrame& frame_;
  const ReadWord& stack_;
  HotspotFrameCode code_;
  HotspotFrame noted_;
};

std::optional<CodeStep> HotspotSteps::Step(const CodeFrame& frame,
                                           const ReadWord& stack) {
  // Frames that were taken back come again.
  std::erase_if(frames_, [&](const HotspotFrame& other) {
    return other.number >= frame.number;
  });
  if (!code_.Has(frame.at)) return std::nullopt;
  const HotspotBlob* blob = code_.BlobAt(memory_, frame.at);
  if (blob == nullptr) return std::unexpected(StackEnd::kNoTable);
  OneStep step(*this, frame, stack);
  CodeStep caller = step.Leave(*blob);
  // An interpreter's frame without a method is not one.
  const bool is_known = blob->kind != HotspotBlob::Kind::kInterpreter ||
                        step.noted().kind != HotspotFrame::Kind::kStub;
  if (is_known) frames_.push_back(step.noted());
  return caller;
}

}  // namespace ksym
