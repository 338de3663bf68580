// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/eval_frame.h"

#include <algorithm>
#include <array>

#include "ksym/unwind/x86_64/frame_facts.h"
#include "ksym/unwind/x86_64/instruction.h"

namespace ksym {
namespace {

// The word is stored within so many instructions; known builds need up to 60.
constexpr size_t kMostInstructions = 256;
// A frame object's own members, before its locals, have some 360 bytes.
constexpr int64_t kMostOffset = 1024;
constexpr int32_t kMostFrame = 4096;
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
    if (reg >= kRegisters || !values_[reg]) return std::nullopt;
    const int64_t offset = *values_[reg];
    if (offset < 0 || offset > kMostOffset) return std::nullopt;
    return static_cast<uint16_t>(offset);
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
  if (base == FrameFacts::kUnknown || base > kMostFrame ||
      i.number > kMostFrame || i.number < -kMostFrame) {
    return std::nullopt;
  }
  const int32_t below = base - i.number;
  // The return address is at 8.
  if (below < 16 || below > kMostFrame || below % 8 != 0) return std::nullopt;
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

}  // namespace

std::optional<CpythonFrameWord> FindCpythonFrameWord(
    std::span<const std::byte> code, uint8_t argument) {
  FrameValues values(argument);
  Copies copies;
  FrameFacts facts;
  size_t at = 0;
  for (size_t count = 0; count < kMostInstructions; ++count) {
    const Instruction i = DecodeInstruction(code.subspan(at));
    if (i.size == 0) break;
    if (i.effect == FrameEffect::kStore && i.stored_bytes == 8) {
      const auto offset = values.OffsetIn(i.reg);
      const auto below = StoredBelow(facts, i);
      if (offset && below && !IsStoredOtherwise(code, i, copies.Of(i.reg))) {
        return CpythonFrameWord{.below_cfa = *below, .offset = *offset};
      }
    }
    if (i.flow != CodeFlow::kNext && i.flow != CodeFlow::kBranch &&
        !FrameValues::IsCall(i)) {
      break;
    }
    values.Follow(i);
    copies.Follow(i);
    facts =
        FrameValues::IsCall(i) ? AfterCall(facts) : AfterInstruction(facts, i);
    at += i.size;
  }
  return std::nullopt;
}

}  // namespace ksym
