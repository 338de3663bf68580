// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/x86_64/instruction.h"

#include <limits>

#include "ksym/unwind/x86_64/instruction_fields.h"

namespace ksym {
namespace {

bool FitsNumber(int64_t value) {
  return value >= std::numeric_limits<int32_t>::min() &&
         value <= std::numeric_limits<int32_t>::max();
}

unsigned Group(const InstructionFields& f) { return f.reg & 7u; }

bool IsLegacy(const InstructionFields& f, OpcodeMap map) {
  return f.encoding == Encoding::kLegacy && f.map == map;
}

// Pushes and pops move 8 bytes, unless a prefix makes it 2.
bool IsWholeWord(const InstructionFields& f) { return !f.has_66 || f.is_wide; }

CodeFlow FlowOfGroup5(const InstructionFields& f) {
  switch (Group(f)) {
    case 2:
    case 3:
      return f.is_rip_relative ? CodeFlow::kCallSlot : CodeFlow::kCallPointer;
    case 4:
    case 5:
      return CodeFlow::kJumpAnywhere;
    default:
      return CodeFlow::kNext;
  }
}

CodeFlow FlowOf0f(const InstructionFields& f) {
  if ((f.opcode & 0xf0) == 0x80) return CodeFlow::kBranch;
  switch (f.opcode) {
    case 0x05:
    case 0x34:
      return CodeFlow::kSystemCall;
    case 0x07:  // sysret
    case 0x35:
    case 0x0b:  // ud2, ud1, ud0
    case 0xb9:
    case 0xff:
      return CodeFlow::kStop;
    default:
      return CodeFlow::kNext;
  }
}

CodeFlow FlowOf(const InstructionFields& f) {
  if (IsLegacy(f, OpcodeMap::k0f)) return FlowOf0f(f);
  if (!IsLegacy(f, OpcodeMap::kOne)) return CodeFlow::kNext;
  if ((f.opcode & 0xf0) == 0x70) return CodeFlow::kBranch;
  switch (f.opcode) {
    case 0xe0:
    case 0xe1:
    case 0xe2:
    case 0xe3:
      return CodeFlow::kBranch;
    case 0xe8:
      return CodeFlow::kCall;
    case 0xe9:
    case 0xeb:
      return CodeFlow::kJump;
    case 0xc3:
      return CodeFlow::kReturn;
    case 0xc2:
      return CodeFlow::kReturnPop;
    case 0xcd:
      return CodeFlow::kSystemCall;
    case 0xca:
    case 0xcb:
    case 0xcc:
    case 0xcf:
    case 0xf1:
    case 0xf4:
      return CodeFlow::kStop;
    case 0xff:
      return FlowOfGroup5(f);
    default:
      return CodeFlow::kNext;
  }
}

void SetPush(uint8_t reg, const InstructionFields& f, Instruction& out) {
  out.effect = FrameEffect::kPush;
  out.reg = reg;
  if (!IsWholeWord(f)) out.written |= 1u << kCodeRsp;
}

void SetPop(uint8_t reg, const InstructionFields& f, Instruction& out) {
  out.effect = FrameEffect::kPop;
  out.reg = reg;
  out.written = 0;
  if (!IsWholeWord(f) || reg == kCodeRsp) out.written = 1u << kCodeRsp;
}

// Whether the operand in memory is a base register and a number.
bool IsPlainMemory(const InstructionFields& f) {
  return f.mod != 3 && f.base != kNoCodeRegister && !f.has_67 && !f.has_segment;
}

// mov between registers, and between one and memory.
void SetMove(const InstructionFields& f, Instruction& out) {
  const bool is_load = f.opcode == 0x8b;
  if (f.mod == 3) {
    if (!f.is_wide) return;
    out.effect = FrameEffect::kCopy;
    out.reg = is_load ? f.reg : f.rm;
    out.base = is_load ? f.rm : f.reg;
    out.written = 0;
    return;
  }
  if (!IsPlainMemory(f) || (is_load && !f.is_wide)) return;
  out.effect = is_load ? FrameEffect::kLoad : FrameEffect::kStore;
  out.base = f.base;
  out.number = f.displacement;
  out.reg = f.is_wide ? f.reg : kNoCodeRegister;
  out.stored_bytes = f.is_wide ? 8 : 4;
  if (is_load) out.written = 0;
}

void SetOtherStore(const InstructionFields& f, Instruction& out) {
  if (!IsPlainMemory(f)) return;
  out.effect = FrameEffect::kStore;
  out.base = f.base;
  out.number = f.displacement;
  const bool is_byte = f.opcode == 0x88 || f.opcode == 0xc6;
  out.stored_bytes = is_byte ? 1 : f.is_wide ? 8 : 4;
}

void SetAddress(const InstructionFields& f, Instruction& out) {
  if (!f.is_wide || f.has_67 || f.mod == 3) return;
  if (f.is_rip_relative) {
    out.effect = FrameEffect::kTakeAddress;
  } else if (f.base != kNoCodeRegister) {
    out.effect = FrameEffect::kCopy;
    out.base = f.base;
    out.written = 0;
  }
  out.reg = f.reg;
  out.number = f.displacement;
}

// add, sub and and of RSP and a number.
void SetArithmetic(const InstructionFields& f, Instruction& out) {
  if (f.mod != 3 || f.rm != kCodeRsp || !f.is_wide) return;
  const bool is_add = Group(f) == 0;
  if (!is_add && Group(f) != 5 && (Group(f) != 4 || f.immediate >= 0)) return;
  const int64_t number = Group(f) == 5 ? -f.immediate : f.immediate;
  if (!FitsNumber(number)) return;
  out.effect = Group(f) == 4 ? FrameEffect::kAlign : FrameEffect::kAdd;
  out.number = static_cast<int32_t>(number);
  out.written = 0;
}

void SetGroupEffect(const InstructionFields& f, Instruction& out) {
  switch (f.opcode) {
    case 0x81:
    case 0x83:
      SetArithmetic(f, out);
      return;
    case 0x8f:
      SetPop(f.mod == 3 ? f.rm : kNoCodeRegister, f, out);
      return;
    case 0xff:
      if (Group(f) == 6) SetPush(kNoCodeRegister, f, out);
      return;
    default:  // c6, c7, and what begins a transaction
      if (Group(f) == 0) SetOtherStore(f, out);
      return;
  }
}

void SetOneByteEffect(const InstructionFields& f, Instruction& out) {
  if ((f.opcode & 0xf8) == 0x50) return SetPush(f.low, f, out);
  if ((f.opcode & 0xf8) == 0x58) return SetPop(f.low, f, out);
  switch (f.opcode) {
    case 0x68:
    case 0x6a:
    case 0x9c:
      return SetPush(kNoCodeRegister, f, out);
    case 0x9d:
      return SetPop(kNoCodeRegister, f, out);
    case 0x88:
      return SetOtherStore(f, out);
    case 0x89:
    case 0x8b:
      return SetMove(f, out);
    case 0x8d:
      return SetAddress(f, out);
    case 0xc9:
      if (!IsWholeWord(f)) return;
      out.effect = FrameEffect::kLeave;
      out.written = 0;
      return;
    case 0x81:
    case 0x83:
    case 0x8f:
    case 0xc6:
    case 0xc7:
    case 0xff:
      return SetGroupEffect(f, out);
    default:
      return;
  }
}

void SetEffect(const InstructionFields& f, Instruction& out) {
  if (IsLegacy(f, OpcodeMap::kOne)) return SetOneByteEffect(f, out);
  if (!IsLegacy(f, OpcodeMap::k0f)) return;
  // push and pop of FS and GS
  if (f.opcode == 0xa0 || f.opcode == 0xa8) SetPush(kNoCodeRegister, f, out);
  if (f.opcode == 0xa1 || f.opcode == 0xa9) SetPop(kNoCodeRegister, f, out);
}

// nop in all its lengths, xchg %ax, %ax and int3; and two zero bytes, which
// linkers fill with, and which are an instruction.
bool IsPadding(const InstructionFields& f, std::span<const std::byte> code) {
  if (IsLegacy(f, OpcodeMap::k0f)) return f.opcode == 0x1f;
  if (!IsLegacy(f, OpcodeMap::kOne)) return false;
  if (f.opcode == 0x90) return f.low == 0 && !f.has_f3;
  return f.opcode == 0xcc || (f.opcode == 0 && code[1] == std::byte{0});
}

}  // namespace

Instruction DecodeInstruction(std::span<const std::byte> code) {
  Instruction out;
  const InstructionFields f = ParseInstruction(code);
  if (f.size == 0) return out;
  out.size = static_cast<uint8_t>(f.size);
  out.flow = FlowOf(f);
  out.written = WrittenRegisters(f);
  SetEffect(f, out);
  if (out.flow == CodeFlow::kJump || out.flow == CodeFlow::kBranch ||
      out.flow == CodeFlow::kCall) {
    out.target = static_cast<int32_t>(f.immediate);
  }
  out.is_padding = IsPadding(f, code);
  return out;
}

}  // namespace ksym
