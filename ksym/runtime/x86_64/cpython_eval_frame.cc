// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/eval_frame.h"

#include <algorithm>
#include <array>
#include <map>

#include "ksym/unwind/x86_64/frame_facts.h"
#include "ksym/unwind/x86_64/instruction.h"

namespace ksym {
namespace {

// The word is stored within so many instructions; known builds need up to 60.
constexpr size_t kMaxInstructions = 256;
// A frame object's own members, before its locals, have some 360 bytes.
constexpr int64_t kMaxOffset = 1024;
constexpr int32_t kMaxFrame = 4096;
constexpr size_t kRegisters = 16;
// RAX, RCX, RDX, RSI, RDI and R8 to R11.
constexpr uint16_t kLostInCalls = 0x0fc7;

// What registers have while a function begins, as far as it is the frame
// object's address and a number.
class FrameValues {
 public:
  explicit FrameValues(uint8_t argument) { values_[argument] = 0; }

  void Follow(const Instruction& i) {
    std::optional<int64_t> copied;
    if (i.effect == FrameEffect::kCopy && i.base < kRegisters) {
      copied = values_[i.base];
      if (copied) *copied += i.number;
    }
    Lose(i.written);
    switch (i.effect) {
      case FrameEffect::kCopy:
      case FrameEffect::kLoad:
      case FrameEffect::kPop:
      case FrameEffect::kTakeAddress:
        if (i.reg < kRegisters) values_[i.reg] = copied;
        break;
      case FrameEffect::kLeave:
        values_[kCodeRbp].reset();
        break;
      default:
        break;
    }
    if (IsCall(i)) Lose(kLostInCalls);
  }

  // The offset that a register's value has, if it may be the word.
  std::optional<uint16_t> OffsetIn(uint8_t reg) const {
    const auto offset = reg < kRegisters ? values_[reg] : std::nullopt;
    if (!offset || *offset < 0 || *offset > kMaxOffset) return std::nullopt;
    return static_cast<uint16_t>(*offset);
  }

  static bool IsCall(const Instruction& i) {
    return i.flow == CodeFlow::kCall || i.flow == CodeFlow::kCallSlot ||
           i.flow == CodeFlow::kCallPointer;
  }

 private:
  void Lose(uint16_t registers) {
    for (size_t i = 0; i < kRegisters; ++i) {
      if ((registers >> i & 1u) != 0) values_[i].reset();
    }
  }

  std::array<std::optional<int64_t>, kRegisters> values_;
};

// How far below the CFA an instruction stores; it must be in the frame.
std::optional<uint16_t> StoredBelow(const FrameFacts& facts,
                                    const Instruction& i) {
  int32_t base = FrameFacts::kUnknown;
  if (i.base == kCodeRsp) base = facts.rsp;
  if (i.base == kCodeRbp) base = facts.rbp;
  // What is not known is larger, too.
  if (base > kMaxFrame || i.number > kMaxFrame || i.number < -kMaxFrame) {
    return std::nullopt;
  }
  const int32_t below = base - i.number;
  // The return address is at 8.
  if (below < 16 || below > kMaxFrame || below % 8 != 0) return std::nullopt;
  return static_cast<uint16_t>(below);
}

// Which registers have another one's value and a number, by the instruction
// that made it.
class Copies {
 public:
  struct Copy {
    uint8_t base = kNoCodeRegister;
    int32_t number = 0;
    friend bool operator==(const Copy&, const Copy&) = default;
  };

  void Follow(const Instruction& i) {
    for (size_t reg = 0; reg < kRegisters; ++reg) {
      if ((i.written >> reg & 1u) != 0) copies_[reg].reset();
    }
    if (i.reg >= kRegisters) return;
    if (i.effect == FrameEffect::kCopy) {
      copies_[i.reg] = Copy{.base = i.base, .number = i.number};
    } else if (i.effect == FrameEffect::kLoad ||
               i.effect == FrameEffect::kPop ||
               i.effect == FrameEffect::kTakeAddress) {
      copies_[i.reg].reset();
    }
  }
  std::optional<Copy> Of(uint8_t reg) const {
    return reg < kRegisters ? copies_[reg] : std::nullopt;
  }

 private:
  std::array<std::optional<Copy>, kRegisters> copies_;
};

// Whether other code of the function puts something else there. Compilers have
// the function's begin several times, and there the word is made in the same
// way.
bool IsStoredOtherwise(std::span<const std::byte> code,
                       const Instruction& first,
                       const std::optional<Copies::Copy>& made) {
  Copies copies;
  size_t stores = 0;
  size_t others = 0;
  while (!code.empty()) {
    const Instruction i = DecodeInstruction(code);
    if (i.effect == FrameEffect::kStore && i.base == first.base &&
        i.number == first.number) {
      ++stores;
      const bool is_same = i.stored_bytes == first.stored_bytes && made &&
                           copies.Of(i.reg) == made;
      others += is_same ? 0 : 1;
    }
    copies.Follow(i);
    code = code.subspan(std::clamp<size_t>(i.size, 1, code.size()));
  }
  return stores > 1 && others > 0;
}

// What is known before an instruction.
struct State {
  FrameValues values;
  Copies copies;
  FrameFacts facts;

  void Follow(const Instruction& i) {
    values.Follow(i);
    copies.Follow(i);
    facts =
        FrameValues::IsCall(i) ? AfterCall(facts) : AfterInstruction(facts, i);
  }
};

// The function's begin, from one instruction to the next, and where that ends
// from where a branch before it led on to.
class Begin {
 public:
  Begin(std::span<const std::byte> code, uint8_t argument)
      : code_(code),
        state_{.values = FrameValues(argument), .copies = {}, .facts = {}} {}

  std::optional<CpythonFrameWord> FindWord() {
    for (size_t count = 0; count < kMaxInstructions; ++count) {
      const Instruction i = DecodeInstruction(code_.subspan(at_));
      if (i.size == 0) return std::nullopt;
      if (const auto word = WordOf(i)) return word;
      state_.Follow(i);
      at_ += i.size;
      if (i.flow == CodeFlow::kBranch || i.flow == CodeFlow::kJump) Note(i);
      const bool goes_on = i.flow == CodeFlow::kNext ||
                           i.flow == CodeFlow::kBranch ||
                           FrameValues::IsCall(i);
      if (!goes_on && !GoOnBehind()) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  std::optional<CpythonFrameWord> WordOf(const Instruction& i) const {
    if (i.effect != FrameEffect::kStore || i.stored_bytes != 8) {
      return std::nullopt;
    }
    const auto offset = state_.values.OffsetIn(i.reg);
    const auto below = StoredBelow(state_.facts, i);
    if (!offset || !below ||
        IsStoredOtherwise(code_, i, state_.copies.Of(i.reg))) {
      return std::nullopt;
    }
    return CpythonFrameWord{.below_cfa = *below, .offset = *offset};
  }

  void Note(const Instruction& i) {
    if (i.target < 0) return;
    branches_.try_emplace(at_ + static_cast<size_t>(i.target), state_);
  }

  bool GoOnBehind() {
    const auto next = branches_.lower_bound(at_);
    if (next == branches_.end() || next->first >= code_.size()) return false;
    at_ = next->first;
    state_ = next->second;
    return true;
  }

  std::span<const std::byte> code_;
  State state_;
  size_t at_ = 0;
  std::map<size_t, State> branches_;  // by where they lead
};

}  // namespace

std::optional<CpythonFrameWord> FindCpythonFrameWord(
    std::span<const std::byte> code, size_t argument) {
  // System V's calling convention.
  constexpr std::array<uint8_t, 2> kArguments = {kCodeRdi, kCodeRsi};
  return Begin(code, kArguments.at(argument)).FindWord();
}

}  // namespace ksym
