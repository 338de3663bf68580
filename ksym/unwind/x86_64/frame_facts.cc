// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/x86_64/frame_facts.h"

#include <optional>

namespace ksym {
namespace {

constexpr int32_t kUnknown = FrameFacts::kUnknown;
constexpr int32_t kInRegister = FrameFacts::kInRegister;
constexpr int32_t kWord = 8;
constexpr int32_t kReturnAddress = 8;
// Signal handlers leave that much below RSP as it is.
constexpr int32_t kRedZone = 128;

// Distances are small, or not known.
int32_t Limited(int64_t distance) {
  const bool is_small =
      distance >= -kMaxFrameDistance && distance <= kMaxFrameDistance;
  return is_small ? static_cast<int32_t>(distance) : kUnknown;
}

int32_t Less(int32_t distance, int64_t number) {
  return distance == kUnknown ? kUnknown : Limited(distance - number);
}

FrameFacts Nothing() {
  FrameFacts facts;
  facts.rsp = kUnknown;
  return facts;
}

// The distance of what a register holds.
int32_t DistanceOf(const FrameFacts& facts, uint8_t reg) {
  if (reg == kCodeRsp) return facts.rsp;
  if (reg == kCodeRbp) return facts.rbp;
  return reg == facts.copy_register ? facts.copy : kUnknown;
}

void DropCopy(FrameFacts& facts) {
  facts.copy = kUnknown;
  facts.copy_register = kNoCodeRegister;
}

// A saved word at `saved` that may be overwritten by `size` bytes at `at`.
void DropOverwritten(int32_t at, int32_t size, int32_t& saved) {
  if (saved == kInRegister || saved == kUnknown) return;
  if (at > saved - kWord && at < saved + size) saved = kUnknown;
}

// Facts about one frame while an instruction changes them.
class Frame {
 public:
  explicit Frame(const FrameFacts& facts) : facts_(facts) {}

  FrameFacts facts() const { return facts_; }

  void Apply(const Instruction& i);
  // The registers in a mask have other values now.
  void Change(uint16_t written);

 private:
  void Push(uint8_t reg);
  void Pop(uint8_t reg);
  void MoveStack(int64_t down);
  void SetStack(int32_t distance);
  void Align();
  void Copy(const Instruction& i);
  void Load(const Instruction& i);
  void Store(const Instruction& i);
  void Leave();
  // A caller's register gets the word at a distance.
  void Restore(uint8_t reg, int32_t at);
  void Keep(uint8_t reg, int32_t at);
  void Save(uint8_t reg, int32_t at);
  void DropBelow();

  FrameFacts facts_;
};

// What is further below RSP than the red zone is nobody's.
void Frame::DropBelow() {
  if (facts_.rsp == kUnknown) return;
  for (int32_t* saved : {&facts_.rbp_saved, &facts_.rbx_saved}) {
    if (*saved != kUnknown && *saved > facts_.rsp + kRedZone) {
      *saved = kUnknown;
    }
  }
}

void Frame::SetStack(int32_t distance) {
  facts_.rsp = distance;
  facts_.aligned = kUnknown;
  facts_.kept_at = kUnknown;
  // The return address is still to be taken by a "ret".
  if (distance < kReturnAddress) facts_ = Nothing();
  DropBelow();
}

void Frame::MoveStack(int64_t down) {
  if (facts_.rsp != kUnknown) {
    SetStack(Less(facts_.rsp, -down));
  } else if (facts_.aligned != kUnknown) {
    facts_.aligned = Less(facts_.aligned, -down);
    if (facts_.aligned == kUnknown) facts_.kept_at = kUnknown;
  }
}

// From here on RSP is somewhere below, which only other registers know.
void Frame::Align() {
  facts_.rsp = kUnknown;
  facts_.aligned = 0;
  facts_.kept_at = kUnknown;
}

void Frame::Save(uint8_t reg, int32_t at) {
  int32_t& saved = reg == kCodeRbp ? facts_.rbp_saved : facts_.rbx_saved;
  const bool is_callers = reg == kCodeRbp ? facts_.rbp == kUnknown : true;
  if (saved == kInRegister && is_callers && at > kReturnAddress) saved = at;
}

void Frame::Push(uint8_t reg) {
  MoveStack(kWord);
  const int32_t at = facts_.rsp;
  if (at == kUnknown) {
    if (facts_.aligned != kUnknown) Keep(reg, facts_.aligned);
    return;
  }
  DropOverwritten(at, kWord, facts_.rbp_saved);
  DropOverwritten(at, kWord, facts_.rbx_saved);
  if (reg == kCodeRbp || reg == kCodeRbx) Save(reg, at);
}

// `at` is a distance below where RSP was aligned.
void Frame::Keep(uint8_t reg, int32_t at) {
  if (facts_.kept_at != kUnknown && at > facts_.kept_at - kWord &&
      at < facts_.kept_at + kWord) {
    facts_.kept_at = kUnknown;
  }
  const int32_t distance = DistanceOf(facts_, reg);
  if (distance == kUnknown || facts_.kept_at != kUnknown) return;
  facts_.kept_at = at;
  facts_.kept = distance;
}

void Frame::Restore(uint8_t reg, int32_t at) {
  if (reg == kNoCodeRegister) return;
  const bool is_rbp = reg == kCodeRbp;
  if (is_rbp || reg == kCodeRbx) {
    int32_t& saved = is_rbp ? facts_.rbp_saved : facts_.rbx_saved;
    if (at != kUnknown && at == saved) {
      saved = kInRegister;
      if (is_rbp) facts_.rbp = kUnknown;
      if (reg == facts_.copy_register) DropCopy(facts_);
      return;
    }
  }
  Change(static_cast<uint16_t>(1u << reg));
}

void Frame::Pop(uint8_t reg) {
  const int32_t at = facts_.rsp;
  Restore(reg, at);
  MoveStack(-kWord);
}

void Frame::Copy(const Instruction& i) {
  const int32_t distance = Less(DistanceOf(facts_, i.base), i.number);
  if (i.reg == kCodeRsp) {
    // lea -n(%rsp), %rsp where only a kept word knows the frame
    if (i.base == kCodeRsp) return MoveStack(-int64_t{i.number});
    return SetStack(distance);
  }
  Change(static_cast<uint16_t>(1u << i.reg));
  if (distance == kUnknown) return;
  if (i.reg == kCodeRbp) {
    facts_.rbp = distance;
  } else if (facts_.copy == kUnknown || i.number == 0) {
    facts_.copy = distance;
    facts_.copy_register = i.reg;
  }
}

void Frame::Load(const Instruction& i) {
  const int32_t at = Less(DistanceOf(facts_, i.base), i.number);
  if (i.base == kCodeRsp && facts_.IsKept() &&
      Less(facts_.aligned, i.number) == facts_.kept_at) {
    if (i.reg == kCodeRsp) return SetStack(facts_.kept);
    Change(static_cast<uint16_t>(1u << i.reg));
    if (i.reg == kCodeRbp) {
      facts_.rbp = facts_.kept;
    } else {
      facts_.copy = facts_.kept;
      facts_.copy_register = i.reg;
    }
    return;
  }
  Restore(i.reg, at);
}

void Frame::Store(const Instruction& i) {
  const int32_t at = Less(DistanceOf(facts_, i.base), i.number);
  if (at == kUnknown) {
    if (i.base == kCodeRsp && facts_.aligned != kUnknown) {
      Keep(i.reg, Less(facts_.aligned, i.number));
    }
    return;
  }
  if (at > 0 && at < kReturnAddress + i.stored_bytes) {
    facts_ = Nothing();
    return;
  }
  DropOverwritten(at, i.stored_bytes, facts_.rbp_saved);
  DropOverwritten(at, i.stored_bytes, facts_.rbx_saved);
  if (i.reg == kCodeRbp || i.reg == kCodeRbx) Save(i.reg, at);
}

void Frame::Leave() {
  SetStack(facts_.rbp);
  if (facts_.IsKnown()) Pop(kCodeRbp);
}

void Frame::Change(uint16_t written) {
  const auto has = [&](uint8_t reg) { return (written >> reg & 1) != 0; };
  if (has(kCodeRsp)) SetStack(kUnknown);
  if (has(kCodeRbp)) {
    facts_.rbp = kUnknown;
    if (facts_.rbp_saved == kInRegister) facts_.rbp_saved = kUnknown;
  }
  if (has(kCodeRbx) && facts_.rbx_saved == kInRegister) {
    facts_.rbx_saved = kUnknown;
  }
  if (facts_.copy_register != kNoCodeRegister && has(facts_.copy_register)) {
    DropCopy(facts_);
  }
}

void Frame::Apply(const Instruction& i) {
  switch (i.effect) {
    case FrameEffect::kNone:
    case FrameEffect::kTakeAddress:
      break;
    case FrameEffect::kPush:
      Push(i.reg);
      break;
    case FrameEffect::kPop:
      Pop(i.reg);
      break;
    case FrameEffect::kAdd:
      MoveStack(-int64_t{i.number});
      break;
    case FrameEffect::kAlign:
      Align();
      break;
    case FrameEffect::kCopy:
      Copy(i);
      break;
    case FrameEffect::kStore:
      Store(i);
      break;
    case FrameEffect::kLoad:
      Load(i);
      break;
    case FrameEffect::kLeave:
      Leave();
      break;
  }
  Change(i.written);
}

// What is known of both.
int32_t Same(int32_t a, int32_t b) { return a == b ? a : kUnknown; }

}  // namespace

FrameFacts AfterInstruction(const FrameFacts& before,
                            const Instruction& instruction) {
  Frame frame(before);
  frame.Apply(instruction);
  return frame.facts();
}

FrameFacts AfterCall(const FrameFacts& before) {
  // R8 to R11 and those below but RBX, RSP and RBP.
  constexpr uint16_t kChanged =
      0x0fff & ~(1u << kCodeRbx) & ~(1u << kCodeRsp) & ~(1u << kCodeRbp);
  Frame frame(before);
  frame.Change(kChanged);
  FrameFacts facts = frame.facts();
  // The callee's frame is where the red zone was.
  for (int32_t* saved : {&facts.rbp_saved, &facts.rbx_saved}) {
    const bool is_below = facts.rsp != kUnknown && *saved > facts.rsp;
    if (is_below) *saved = kUnknown;
  }
  if (facts.IsKept() && facts.kept_at > facts.aligned) {
    facts.kept_at = kUnknown;
  }
  return facts;
}

FrameFacts Common(const FrameFacts& a, const FrameFacts& b) {
  if (a.rsp != kUnknown && b.rsp != kUnknown && a.rsp != b.rsp) {
    return Nothing();
  }
  FrameFacts both;
  both.rsp = Same(a.rsp, b.rsp);
  both.rbp = Same(a.rbp, b.rbp);
  both.rbp_saved = Same(a.rbp_saved, b.rbp_saved);
  both.rbx_saved = Same(a.rbx_saved, b.rbx_saved);
  if (a.copy_register == b.copy_register && a.copy == b.copy) {
    both.copy = a.copy;
    both.copy_register = a.copy_register;
  }
  both.aligned = Same(a.aligned, b.aligned);
  if (a.kept_at == b.kept_at && a.kept == b.kept) {
    both.kept_at = a.kept_at;
    both.kept = a.kept;
  }
  return both;
}

}  // namespace ksym
