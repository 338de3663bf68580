// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/call_frame_program.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "ksym/unwind/arch.h"

namespace ksym {
namespace {

// DW_CFA_*: DWARF 5, 7.24, and the GNU extensions.
enum Opcode : uint8_t {
  kAdvanceLoc = 0x40,  // with a delta in the low 6 bits
  kOffset = 0x80,      // with a register in them
  kRestore = 0xc0,     // likewise
  kNop = 0x00,
  kSetLoc = 0x01,
  kAdvanceLoc1 = 0x02,
  kAdvanceLoc2 = 0x03,
  kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0a,
  kRestoreState = 0x0b,
  kDefCfa = 0x0c,
  kDefCfaRegister = 0x0d,
  kDefCfaOffset = 0x0e,
  kDefCfaExpression = 0x0f,
  kExpression = 0x10,
  kOffsetExtendedSf = 0x11,
  kDefCfaSf = 0x12,
  kDefCfaOffsetSf = 0x13,
  kValOffset = 0x14,
  kValOffsetSf = 0x15,
  kValExpression = 0x16,
  kGnuArgsSize = 0x2e,
  kGnuNegativeOffsetExtended = 0x2f,
};

// Compilers nest them once or twice.
constexpr size_t kMaxRemembered = 64;

bool FitsInt32(int64_t value) {
  return value >= std::numeric_limits<int32_t>::min() &&
         value <= std::numeric_limits<int32_t>::max();
}

// A ULEB128 number as a signed one; what does not fit is out of any range.
int64_t ToSigned(uint64_t value) {
  return static_cast<int64_t>(
      std::min<uint64_t>(value, uint64_t{std::numeric_limits<int64_t>::max()}));
}

int64_t Multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product)
             ? std::numeric_limits<int64_t>::max()
             : product;
}

// The rule of a register that rows know, or null.
template <typename State>
auto RuleOf(State& state, uint64_t number) -> decltype(&state.frame_pointer) {
  if (number == kDwarfFramePointer) return &state.frame_pointer;
  if (number == kDwarfExtra) return &state.extra;
  return number == kDwarfReturnAddress ? &state.return_address : nullptr;
}

}  // namespace

CallFrameProgram::CallFrameProgram(const CallFrameSection& section,
                                   const CommonEntry& common,
                                   std::span<const std::byte> code,
                                   const FrameEntry& entry)
    : section_(section),
      common_(common),
      in_(code),
      instructions_at_(entry.instructions),
      state_(common.initial),
      start_(entry.start),
      location_(entry.start),
      end_(entry.start + entry.size) {}

CallFrameProgram::CallFrameProgram(const CallFrameSection& section,
                                   const CommonEntry& common,
                                   const FrameEntry& entry)
    : CallFrameProgram(
          section, common,
          std::span(section.bytes)
              .subspan(entry.instructions, entry.instructions_size),
          entry) {}

// The functions up to RunOne() run for each instruction of a file.

inline void CallFrameProgram::SetRule(uint64_t number, RegisterRule rule) {
  if (RegisterRule* known = RuleOf(state_, number)) *known = rule;
}

inline void CallFrameProgram::SetSavedAt(uint64_t number, int64_t factored) {
  RegisterRule* known = RuleOf(state_, number);
  if (known == nullptr) return;
  const int64_t offset = Multiply(factored, common_.data_alignment);
  if (FitsInt32(offset)) {
    *known = {RegisterRule::Kind::kAtCfa, static_cast<int32_t>(offset)};
  } else {
    *known = {RegisterRule::Kind::kOther, 0};
  }
}

inline void CallFrameProgram::Restore(uint64_t number) {
  if (const RegisterRule* initial = RuleOf(common_.initial, number)) {
    *RuleOf(state_, number) = *initial;
  }
}

inline void CallFrameProgram::Advance(uint64_t units) {
  const auto bytes = CheckedMul(units, common_.code_alignment);
  const auto to = bytes ? CheckedAdd(location_, *bytes) : std::nullopt;
  location_ = to.value_or(std::numeric_limits<uint64_t>::max());
}

inline void CallFrameProgram::SetCfaOffset(int64_t offset) {
  // The instruction is only good where a register and an offset make the CFA
  // (DWARF 5, section 6.4.2.2).
  if (state_.cfa.kind != CfaRule::Kind::kRegister) return;
  if (FitsInt32(offset)) {
    state_.cfa.offset = static_cast<int32_t>(offset);
  } else {
    state_.cfa.kind = CfaRule::Kind::kOther;
  }
}

[[gnu::always_inline]] inline void CallFrameProgram::RunOne() {
  const auto opcode = in_.Read<uint8_t>();
  const uint8_t operand = opcode & 0x3fu;
  switch (opcode & 0xc0u) {
    case kAdvanceLoc:
      Advance(operand);
      break;
    case kOffset:
      SetSavedAt(operand, ToSigned(in_.ReadUleb128()));
      break;
    case kRestore:
      Restore(operand);
      break;
    default:
      if (opcode == kDefCfaOffset) {
        SetCfaOffset(ToSigned(in_.ReadUleb128()));
      } else {
        RunExtended(opcode);
      }
      break;
  }
  if (!in_.ok()) problem_ = "its instructions are cut off";
}

const char* RunInitialInstructions(const CallFrameSection& section,
                                   std::span<const std::byte> code,
                                   CommonEntry& common) {
  // A CIE's instructions are of no place: only the state that they leave
  // counts.
  const FrameEntry nowhere;
  CallFrameProgram program(section, common, code, nowhere);
  while (program.problem_ == nullptr && !program.in_.AtEnd()) program.RunOne();
  common.initial = program.state_;
  return program.problem_;
}

bool CallFrameProgram::Next() {
  start_ = location_;
  if (start_ >= end_ || problem_ != nullptr) return false;
  while (location_ == start_ && problem_ == nullptr) {
    if (in_.AtEnd()) {
      location_ = end_;
    } else {
      RunOne();
    }
  }
  return problem_ == nullptr;
}

void CallFrameProgram::RunExtended(uint8_t opcode) {
  switch (opcode) {
    case kNop:
      break;
    case kSetLoc:
      SetLocation();
      break;
    case kAdvanceLoc1:
      Advance(in_.Read<uint8_t>());
      break;
    case kAdvanceLoc2:
      Advance(in_.Read<uint16_t>());
      break;
    case kAdvanceLoc4:
      Advance(in_.Read<uint32_t>());
      break;
    case kDefCfa:
      SetCfaRegister(in_.ReadUleb128());
      SetCfaOffset(ToSigned(in_.ReadUleb128()));
      break;
    case kDefCfaSf:
      SetCfaRegister(in_.ReadUleb128());
      SetCfaOffset(Multiply(in_.ReadSleb128(), common_.data_alignment));
      break;
    case kDefCfaRegister:
      SetCfaRegister(in_.ReadUleb128());
      break;
    case kDefCfaOffsetSf:
      SetCfaOffset(Multiply(in_.ReadSleb128(), common_.data_alignment));
      break;
    case kDefCfaExpression:
      state_.cfa = ParseCfaExpression(ReadBlock());
      break;
    case kRememberState:
      Remember();
      break;
    case kRestoreState:
      Recall();
      break;
    // How many bytes of arguments are pushed matters where an exception lands.
    case kGnuArgsSize:
      in_.ReadUleb128();
      break;
    default:
      RunRegister(opcode);
      break;
  }
}

void CallFrameProgram::RunRegister(uint8_t opcode) {
  using Kind = RegisterRule::Kind;
  const uint64_t number = in_.ReadUleb128();
  switch (opcode) {
    case kOffsetExtended:
      SetSavedAt(number, ToSigned(in_.ReadUleb128()));
      break;
    case kOffsetExtendedSf:
      SetSavedAt(number, in_.ReadSleb128());
      break;
    case kGnuNegativeOffsetExtended:
      SetSavedAt(number, -ToSigned(in_.ReadUleb128()));
      break;
    case kRestoreExtended:
      Restore(number);
      break;
    case kUndefined:
      SetRule(number, {Kind::kUndefined, 0});
      break;
    case kSameValue:
      SetRule(number, {Kind::kSame, 0});
      break;
    case kExpression:
      SetRule(number, ParseRegisterExpression(ReadBlock()));
      break;
    case kRegister: {
      // Higher numbers are of no register that is known of a frame.
      const uint64_t in = std::min(in_.ReadUleb128(), kDwarfReturnAddress);
      SetRule(number, {Kind::kRegister, static_cast<int32_t>(in)});
      break;
    }
    // It gives the value itself, and rows have places in memory only.
    case kValOffset:
    case kValOffsetSf:
      in_.ReadUleb128();
      SetRule(number, {Kind::kOther, 0});
      break;
    case kValExpression:
      ReadBlock();
      SetRule(number, {Kind::kOther, 0});
      break;
    default:
      problem_ = "one of its instructions is unknown";
      break;
  }
}

void CallFrameProgram::SetLocation() {
  const uint64_t own = section_.address.value + instructions_at_ + in_.offset();
  const auto to = common_.pointers.Read(in_, own);
  if (!to || *to < location_) {
    problem_ = "its locations go backwards";
  } else {
    location_ = *to;
  }
}

void CallFrameProgram::SetCfaRegister(uint64_t number) {
  if (state_.cfa.kind != CfaRule::Kind::kRegister) state_.cfa = {};
  state_.cfa.kind = number <= kDwarfReturnAddress ? CfaRule::Kind::kRegister
                                                  : CfaRule::Kind::kOther;
  state_.cfa.register_number = static_cast<uint8_t>(number);
}

void CallFrameProgram::Remember() {
  if (remembered_.size() >= kMaxRemembered) {
    problem_ = "it remembers too many states";
  } else {
    remembered_.push_back(state_);
  }
}

void CallFrameProgram::Recall() {
  if (remembered_.empty()) {
    problem_ = "it restores a state that it did not remember";
  } else {
    state_ = remembered_.back();
    remembered_.pop_back();
  }
}

std::span<const std::byte> CallFrameProgram::ReadBlock() {
  const uint64_t size = in_.ReadUleb128();
  return in_.ReadBytes(static_cast<size_t>(size));
}

}  // namespace ksym
