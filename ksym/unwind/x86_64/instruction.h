// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ksym {

// General registers by their numbers in instructions, which are not DWARF's.
inline constexpr uint8_t kCodeRax = 0;
inline constexpr uint8_t kCodeRcx = 1;
inline constexpr uint8_t kCodeRdx = 2;
inline constexpr uint8_t kCodeRbx = 3;
inline constexpr uint8_t kCodeRsp = 4;
inline constexpr uint8_t kCodeRbp = 5;
inline constexpr uint8_t kCodeRsi = 6;
inline constexpr uint8_t kCodeRdi = 7;
inline constexpr uint8_t kCodeR11 = 11;
inline constexpr uint8_t kNoCodeRegister = 16;

// No x86-64 instruction is longer.
inline constexpr size_t kMaxInstructionBytes = 15;

// Where execution goes after an instruction.
enum class CodeFlow : uint8_t {
  kNext,
  kJump,         // to a known place
  kBranch,       // to a known place, or on
  kCall,         // of a known place
  kCallSlot,     // through memory at a known place, as linkers write it
  kCallPointer,  // through a register or other memory
  kJumpAnywhere,
  kReturn,
  kReturnPop,   // and takes arguments from the stack
  kSystemCall,  // goes on, unless the call does not return here
  kStop,        // ud2, hlt, int3
};

// What an instruction does that tells where a frame is. RSP, RBP and RBX change
// in other ways as well, which `written` says.
enum class FrameEffect : uint8_t {
  kNone,
  kPush,         // of `reg`, or of kNoCodeRegister
  kPop,          // to `reg`, or to kNoCodeRegister
  kAdd,          // RSP += number
  kAlign,        // RSP &= number, which is negative
  kCopy,         // reg = base + number
  kStore,        // 8 bytes of `reg`, or other `number_bytes`, at base + number
  kLoad,         // reg = the 8 bytes at base + number
  kLeave,        // RSP = RBP, then pop RBP
  kTakeAddress,  // reg = the place that is `number` behind the instruction
};

// One instruction, as far as frames depend on it.
struct Instruction {
  uint8_t size = 0;  // in bytes; 0 when it is unknown, or cut off
  CodeFlow flow = CodeFlow::kNext;
  FrameEffect effect = FrameEffect::kNone;
  uint8_t reg = kNoCodeRegister;
  uint8_t base = kNoCodeRegister;
  uint8_t stored_bytes = 0;  // of kStore
  // It does nothing, as what is put between functions does nothing.
  bool is_padding = false;
  // Registers that may have another value then, a bit each; of kPush to kLeave
  // other than by the effect.
  uint16_t written = 0;
  int32_t number = 0;
  int32_t target = 0;  // of kJump, kBranch and kCall, from the end on
};

// The instruction that `code` begins with. Knows the legacy, VEX, EVEX and XOP
// encodings of 64-bit mode; APX and what no processor has is unknown. Reads
// nothing past `code`. About 10 ns.
Instruction DecodeInstruction(std::span<const std::byte> code);

}  // namespace ksym
