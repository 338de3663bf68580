// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace ksym {

// The general registers by their DWARF numbers (System V ABI, AMD64 supplement,
// figure 3.36).
enum class X86Register : uint8_t {
  kRax,
  kRdx,
  kRcx,
  kRbx,
  kRsi,
  kRdi,
  kRbp,
  kRsp,
  kR8,
  kR9,
  kR10,
  kR11,
  kR12,
  kR13,
  kR14,
  kR15,
};
inline constexpr size_t kX86Registers = 16;

// Those that rows speak of by role (unwind_kinds.h). The extra register is RBX:
// GCC finds frames with it where a function moves its stack pointer to a
// boundary of its own (DRAP), and no other callee-saved one is used so.
inline constexpr X86Register kStackPointerRegister = X86Register::kRsp;
inline constexpr X86Register kFramePointerRegister = X86Register::kRbp;
inline constexpr X86Register kExtraRegister = X86Register::kRbx;

// The same as call-frame information numbers them, and the column of the return
// address.
inline constexpr uint64_t kDwarfRbx = 3;
inline constexpr uint64_t kDwarfRbp = 6;
inline constexpr uint64_t kDwarfRsp = 7;
inline constexpr uint64_t kDwarfRip = 16;

// Where the kernel puts the registers of code that a signal interrupted, from
// the stack pointer of the handler's return on: struct ucontext and struct
// sigcontext_64 (arch/x86/include/uapi/asm/sigcontext.h).
inline constexpr uint64_t kContextRbp = 120;
inline constexpr uint64_t kContextRbx = 128;
inline constexpr uint64_t kContextRsp = 160;
inline constexpr uint64_t kContextRip = 168;

}  // namespace ksym
