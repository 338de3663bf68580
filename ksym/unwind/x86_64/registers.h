// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ksym/unwind/x86_64/register_numbers.h"

namespace ksym {

enum class X86Register : uint8_t {
  kRax = X86_RAX,
  kRdx = X86_RDX,
  kRcx = X86_RCX,
  kRbx = X86_RBX,
  kRsi = X86_RSI,
  kRdi = X86_RDI,
  kRbp = X86_RBP,
  kRsp = X86_RSP,
  kR8 = X86_R8,
  kR9 = X86_R9,
  kR10 = X86_R10,
  kR11 = X86_R11,
  kR12 = X86_R12,
  kR13 = X86_R13,
  kR14 = X86_R14,
  kR15 = X86_R15,
};

// What the rest of ksym/unwind has from its architecture (ksym/unwind/arch.h).
inline constexpr uint16_t kMachine = EM_X86_64;
inline constexpr std::string_view kMachineName = "x86-64";

using MachineRegister = X86Register;
inline constexpr size_t kMachineRegisters = X86_REGISTERS;

// Where glibc keeps a thread's own variables, from the thread pointer on.
inline constexpr uint64_t kGlibcDtv = X86_GLIBC_DTV;
inline constexpr uint64_t kGlibcKeys = X86_GLIBC_PTHREAD_KEYS;
inline constexpr uint64_t kGlibcKeyBlocks = X86_GLIBC_PTHREAD_KEY_BLOCKS;

// The registers that rows speak of by role (unwind_kinds.h). The extra register
// is RBX: GCC finds frames with it where a function moves its stack pointer to
// a boundary of its own (DRAP), and no other callee-saved one is used so.
inline constexpr X86Register kStackPointerRegister = X86Register::kRsp;
inline constexpr X86Register kFramePointerRegister = X86Register::kRbp;
inline constexpr X86Register kExtraRegister = X86Register::kRbx;
// A system call's result is in it: 0 in the new thread that clone() makes.
inline constexpr X86Register kResultRegister = X86Register::kRax;

// The same roles as call-frame information numbers them, and the column of the
// return address, which follows all registers.
inline constexpr uint64_t kDwarfExtra = X86_RBX;
inline constexpr uint64_t kDwarfFramePointer = X86_RBP;
inline constexpr uint64_t kDwarfStackPointer = X86_RSP;
inline constexpr uint64_t kDwarfReturnAddress = X86_RETURN_ADDRESS;

// A signal handler's return finds the interrupted code's registers there, in
// bytes above its stack pointer.
inline constexpr uint64_t kSignalFramePointer = X86_SIGNAL_RBP;
inline constexpr uint64_t kSignalExtra = X86_SIGNAL_RBX;
inline constexpr uint64_t kSignalStackPointer = X86_SIGNAL_RSP;
inline constexpr uint64_t kSignalAddress = X86_SIGNAL_RIP;

// Rows refer to so many bytes below the stack pointer.
inline constexpr uint64_t kRedZoneBytes = X86_RED_ZONE_BYTES;

}  // namespace ksym
