// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/stack_walk.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

namespace ksym {
namespace {

constexpr uint64_t kWord = 8;

uint64_t Offset(int words) {
  return static_cast<uint64_t>(int64_t{words}) * kWord;
}

// A callee-saved register of a frame: most are never needed, so what is kept is
// where it is.
struct SavedRegister {
  enum class Kind : uint8_t { kLost, kValue, kInMemory };
  Kind kind = Kind::kLost;
  uint64_t value = 0;  // or the address
};

// From a frame to its caller.
struct Step {
  size_t frames = 0;    // up to the frame
  uint64_t sp = 0;      // of the frame, where its words begin,
  uint64_t cfa = 0;     // and end
  uint64_t caller = 0;  // the return address
  SavedRegister fp;     // the caller's
  SavedRegister extra;
};

// One walk. Each function that finds an end sets it and returns false or
// nothing.
class StackWalker {
 public:
  StackWalker(const StackCopy& copy, const WalkedCode& code, WalkedStack& stack)
      : copy_(copy), code_(code), stack_(stack) {
    ip_ = copy.ip.value;
    sp_ = Register(kStackPointerRegister);
    fp_ = {SavedRegister::Kind::kValue, Register(kFramePointerRegister)};
    extra_ = {SavedRegister::Kind::kValue, Register(kExtraRegister)};
  }

  void Walk(size_t max_frames) {
    stack_.frames.clear();
    stack_.stack_pointers.clear();
    Go(max_frames);
    if (!IsBroken()) return;
    const StackEnd end = stack_.end;
    const Address unread = stack_.unread;
    if (FollowException()) {
      Go(max_frames);
    } else {
      stack_.end = end;
      stack_.unread = unread;
    }
  }

 private:
  void Go(size_t max_frames) {
    do {
      if (stack_.frames.size() >= std::max<size_t>(max_frames, 1)) {
        End(StackEnd::kDepthLimit);
        return;
      }
    } while (StepFrame());
  }

  bool IsBroken() const {
    return stack_.end != StackEnd::kOutermost &&
           stack_.end != StackEnd::kZeroFramePointer &&
           stack_.end != StackEnd::kDepthLimit;
  }

  bool is_innermost() const { return stack_.frames.size() == 1; }

  bool End(StackEnd end) {
    stack_.end = end;
    return false;
  }

  uint64_t Register(MachineRegister number) const {
    return copy_.registers[static_cast<size_t>(number)];
  }

  std::optional<uint64_t> Read(uint64_t address) {
    if (!IsIn(part_, address)) {
      part_ = FindPart({address});
      if (!IsIn(part_, address)) {
        stack_.unread = {address};
        End(StackEnd::kBadRead);
        return std::nullopt;
      }
    }
    uint64_t word = 0;
    std::memcpy(&word, part_.bytes.data() + (address - part_.address.value),
                sizeof(word));
    return word;
  }

  static bool IsIn(const StackPart& part, uint64_t word) {
    const uint64_t at = word - part.address.value;
    return at < part.bytes.size() && part.bytes.size() - at >= kWord;
  }

  // The last one that does not begin above that.
  StackPart FindPart(Address address) const {
    const auto after =
        std::ranges::upper_bound(copy_.parts, address, {}, &StackPart::address);
    return after == copy_.parts.begin() ? StackPart() : *std::prev(after);
  }

  std::optional<uint64_t> Get(SavedRegister& saved) {
    if (saved.kind == SavedRegister::Kind::kInMemory) {
      const auto word = Read(saved.value);
      if (!word) return std::nullopt;
      saved = {SavedRegister::Kind::kValue, *word};
    }
    if (saved.kind == SavedRegister::Kind::kValue) return saved.value;
    End(StackEnd::kUnsupported);
    return std::nullopt;
  }

  bool StepFrame();
  void RememberStep(uint64_t sp);
  bool FollowException();
  std::optional<uint64_t> FindCatcher(const Step& step);
  bool StepByRow(const UnwindRow& row);
  bool StepUndescribed();
  bool StepByFramePointer();
  bool StepOverSignal();
  std::optional<uint64_t> FindCfa(const UnwindRow& row);
  std::optional<uint64_t> Deref(std::optional<uint64_t> base,
                                const UnwindRow& row);
  std::optional<uint64_t> LeafRegister(const UnwindRow& row);
  bool StepByReturnRegister(const UnwindRow& row);
  bool RestoreRegisters(const UnwindRow& row, uint64_t cfa);

  const StackCopy& copy_;
  const WalkedCode& code_;
  WalkedStack& stack_;
  StackPart part_;  // that the last word was in
  uint64_t ip_ = 0;
  uint64_t sp_ = 0;
  SavedRegister fp_;
  SavedRegister extra_;
  // The CPU was at ip_, which is not a return address.
  bool is_exact_ = true;
  // The first ones, that led to a return address.
  std::array<Step, 8> steps_;
  size_t steps_taken_ = 0;
};

// Adds the frame at ip_ and goes to its caller.
bool StackWalker::StepFrame() {
  const uint64_t at = is_exact_ ? ip_ : ip_ - 1;
  const CodeAt code = code_.find({at});
  const bool is_first = stack_.frames.empty();
  if (code.kind == CodeAt::Kind::kNoMapping && !is_first) {
    return End(ip_ == 0 ? StackEnd::kOutermost : StackEnd::kNoMapping);
  }
  // All but the first are taken for return addresses, from which one is taken
  // off.
  stack_.frames.push_back({is_exact_ && !is_first ? ip_ + 1 : ip_});
  stack_.stack_pointers.push_back(sp_);
  if (code.kind == CodeAt::Kind::kNoMapping) return End(StackEnd::kNoMapping);
  const UnwindRow* row = nullptr;
  if (code.kind == CodeAt::Kind::kTable) {
    const uint64_t base = code.table->base.value + code.load_bias;
    row = FindUnwindRow(*code.table, at - base);
  }
  const uint64_t sp = sp_;
  if (!(row == nullptr ? StepUndescribed() : StepByRow(*row))) return false;
  RememberStep(sp);
  return true;
}

void StackWalker::RememberStep(uint64_t sp) {
  if (is_exact_ || steps_taken_ == steps_.size()) return;
  steps_[steps_taken_++] = {.frames = stack_.frames.size(),
                            .sp = sp,
                            .cfa = sp_,
                            .caller = ip_,
                            .fp = fp_,
                            .extra = extra_};
}

// When an exception is caught, libgcc's unwinder copies the registers and the
// return address that the catcher's callee had saved over its own, and only
// then jumps. Its return address is one in the catcher by then, but the
// catcher's frame begins elsewhere: where a context says that is still in the
// unwinder's frame. True: the walk can go on there.
bool StackWalker::FollowException() {
  for (size_t i = 0; i < steps_taken_; ++i) {
    const Step& step = steps_[i];
    const auto sp = FindCatcher(step);
    if (!sp) continue;
    stack_.frames.resize(step.frames);
    stack_.stack_pointers.resize(step.frames);
    ip_ = step.caller;
    sp_ = *sp;
    fp_ = step.fp;
    extra_ = step.extra;
    is_exact_ = false;
    return true;
  }
  return false;
}

// Members of struct _Unwind_Context (gcc's libgcc/unwind-dw2.c): where the
// return address was saved, the last register's place, the CFA, and the address
// to jump to, which is written over the return address at the end.
std::optional<uint64_t> StackWalker::FindCatcher(const Step& step) {
  constexpr uint64_t kMaxBytes = 4096;
  if (step.cfa - step.sp > kMaxBytes) return std::nullopt;
  for (uint64_t at = step.sp; at + 4 * kWord <= step.cfa; at += kWord) {
    const auto slot = Read(at);
    const auto cfa = Read(at + 2 * kWord);
    if (!slot || !cfa) return std::nullopt;
    if (*cfa != *slot + kWord || *slot < step.cfa) continue;
    const auto saved = Read(*slot);
    if (saved && (*saved == step.caller || *saved == Read(at + 3 * kWord))) {
      return cfa;
    }
  }
  return std::nullopt;
}

bool StackWalker::StepByRow(const UnwindRow& row) {
  switch (GetCfaKind(row)) {
    case CfaKind::kNoInfo:
      return StepUndescribed();
    case CfaKind::kEnd:
      return End(StackEnd::kOutermost);
    case CfaKind::kSignal:
      return StepOverSignal();
    case CfaKind::kReturnRegister:
      return StepByReturnRegister(row);
    default:
      break;
  }
  const auto cfa = FindCfa(row);
  if (!cfa) return false;
  // Stacks grow down, so that each caller's frame is above; this ends the walk
  // of any bytes.
  if (*cfa <= sp_) return End(StackEnd::kNoProgress);
  const auto return_address = Read(*cfa - kWord);
  if (!return_address || !RestoreRegisters(row, *cfa)) return false;
  ip_ = *return_address;
  sp_ = *cfa;
  is_exact_ = false;
  return true;
}

std::optional<uint64_t> StackWalker::FindCfa(const UnwindRow& row) {
  const uint64_t offset = Offset(row.cfa_offset);
  switch (GetCfaKind(row)) {
    case CfaKind::kStackPointer:
      return sp_ + offset;
    case CfaKind::kFramePointer: {
      const auto fp = Get(fp_);
      return fp ? std::optional(*fp + offset) : std::nullopt;
    }
    case CfaKind::kExtra: {
      const auto extra = Get(extra_);
      return extra ? std::optional(*extra + offset) : std::nullopt;
    }
    case CfaKind::kStackPointerDeref:
      return Deref(sp_, row);
    case CfaKind::kFramePointerDeref:
      return Deref(Get(fp_), row);
    case CfaKind::kPlt: {
      // A stub has 16 bytes, and from that one on it has pushed a number.
      const bool has_pushed = static_cast<int>(ip_ & 15u) >= row.cfa_offset;
      return sp_ + kWord + (has_pushed ? kWord : 0);
    }
    case CfaKind::kClone:
      // clone(2) returns 0 in the new thread, which nobody called.
      if (is_innermost() && Register(kResultRegister) != 0) {
        return sp_ + offset;
      }
      End(is_innermost() ? StackEnd::kOutermost : StackEnd::kUnsupported);
      return std::nullopt;
    case CfaKind::kLeafRegister: {
      const auto value = LeafRegister(row);
      return value ? std::optional(*value + Offset(CfaOffsetLow(row)))
                   : std::nullopt;
    }
    default:
      End(StackEnd::kUnsupported);
      return std::nullopt;
  }
}

std::optional<uint64_t> StackWalker::Deref(std::optional<uint64_t> base,
                                           const UnwindRow& row) {
  if (!base) return std::nullopt;
  const auto word = Read(*base + Offset(CfaOffsetHigh(row)));
  return word ? std::optional(*word + Offset(CfaOffsetLow(row))) : std::nullopt;
}

std::optional<uint64_t> StackWalker::LeafRegister(const UnwindRow& row) {
  const auto number = static_cast<uint8_t>(CfaOffsetHigh(row));
  if (!is_innermost() || number >= kMachineRegisters) {
    End(StackEnd::kUnsupported);
    return std::nullopt;
  }
  return copy_.registers[number];
}

// The innermost frame, so that the caller's may begin where it does.
bool StackWalker::StepByReturnRegister(const UnwindRow& row) {
  const auto return_address = LeafRegister(row);
  if (!return_address) return false;
  const uint64_t cfa = sp_ + Offset(CfaOffsetLow(row));
  if (cfa < sp_) return End(StackEnd::kNoProgress);
  if (!RestoreRegisters(row, cfa)) return false;
  ip_ = *return_address;
  sp_ = cfa;
  is_exact_ = false;
  return true;
}

// Makes fp_ and extra_ the caller's.
bool StackWalker::RestoreRegisters(const UnwindRow& row, uint64_t cfa) {
  using Kind = SavedRegister::Kind;
  const uint64_t at = cfa + Offset(row.fp_offset);
  const FramePointerKind kind = GetFramePointerKind(row);
  switch (kind) {
    case FramePointerKind::kSame:
      break;
    case FramePointerKind::kSameExtraSaved:
      extra_ = {Kind::kInMemory, at};
      break;
    case FramePointerKind::kSameExtraLost:
      extra_ = {};
      break;
    case FramePointerKind::kSaved:
      fp_ = {Kind::kInMemory, at};
      break;
    case FramePointerKind::kSavedExtraLost:
      fp_ = {Kind::kInMemory, at};
      extra_ = {};
      break;
    case FramePointerKind::kLost:
      fp_ = {};
      extra_ = {};
      break;
    case FramePointerKind::kSavedAtFramePointer: {
      const auto fp = Get(fp_);
      if (!fp) return false;
      fp_ = {Kind::kInMemory, *fp + Offset(row.fp_offset)};
      extra_ = {};
      break;
    }
    default: {
      const int below =
          kind == FramePointerKind::kSavedExtraBelow
              ? 1
              : static_cast<int>(kind) -
                    static_cast<int>(FramePointerKind::kSavedExtraBelow2) + 2;
      fp_ = {Kind::kInMemory, at};
      extra_ = {Kind::kInMemory, at - Offset(below)};
    }
  }
  return true;
}

// By the runtime that made the code, if it is of one.
bool StackWalker::StepUndescribed() {
  if (code_.steps == nullptr) return StepByFramePointer();
  CodeFrame frame = {.number = stack_.frames.size() - 1,
                     .at = {is_exact_ ? ip_ : ip_ - 1},
                     .sp = sp_,
                     .fp = {},
                     .is_interrupted = is_exact_,
                     .registers = {}};
  if (fp_.kind != SavedRegister::Kind::kLost) frame.fp = Get(fp_);
  // Behind a signal's frame others than the registers of now hold.
  if (is_innermost()) frame.registers = copy_.registers;
  const auto step = code_.steps->Step(
      frame, [this](uint64_t address) { return Read(address); });
  if (!step) return StepByFramePointer();
  if (!*step) return End((*step).error());
  const CodeCaller& caller = **step;
  if (caller.sp <= sp_) return End(StackEnd::kNoProgress);
  ip_ = caller.ip.value;
  sp_ = caller.sp;
  if (caller.fp) fp_ = {SavedRegister::Kind::kValue, *caller.fp};
  extra_ = {};
  is_exact_ = false;
  return true;
}

bool StackWalker::StepByFramePointer() {
  if (fp_.kind == SavedRegister::Kind::kLost) return End(StackEnd::kNoTable);
  const auto fp = Get(fp_);
  if (!fp) return false;
  if (*fp == 0) return End(StackEnd::kZeroFramePointer);
  if (*fp % kWord != 0 || *fp < sp_ || *fp - sp_ > kMaxFrameBytes) {
    return End(StackEnd::kNoTable);
  }
  const auto return_address = Read(*fp + kWord);
  if (!return_address) return false;
  ip_ = *return_address;
  sp_ = *fp + 2 * kWord;
  fp_ = {SavedRegister::Kind::kInMemory, *fp};
  extra_ = {};
  is_exact_ = false;
  return true;
}

bool StackWalker::StepOverSignal() {
  // The trampoline is not called from anywhere: its first byte is where it is.
  if (!is_exact_) stack_.frames.back() = {ip_ + 1};
  const auto ip = Read(sp_ + kSignalAddress);
  const auto sp = Read(sp_ + kSignalStackPointer);
  if (!ip || !sp) return false;
  fp_ = {SavedRegister::Kind::kInMemory, sp_ + kSignalFramePointer};
  extra_ = {SavedRegister::Kind::kInMemory, sp_ + kSignalExtra};
  ip_ = *ip;
  sp_ = *sp;
  is_exact_ = true;
  return true;
}

}  // namespace

void WalkStack(const StackCopy& copy, size_t max_frames, const WalkedCode& code,
               WalkedStack& stack) {
  StackWalker(copy, code, stack).Walk(max_frames);
}

}  // namespace ksym
