// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

#include "ksym/unwind/unwind_kinds.h"

namespace ksym {

// How to get from a frame to its caller, for the code from `pc` on up to the
// next row's. What a program's call-frame information says (DWARF 5, 6.4), cut
// down to what compilers really write, so that the sampler can keep millions of
// rows and follow them in the kernel, where the same 8 bytes are declared
// again. Registers have roles: SP, FP and the extra register (unwind_kinds.h).
//
// The caller's registers follow from this frame's:
//
//   CFA              as the CfaKind says
//   SP               CFA
//   return address   the word at CFA - 8, but for kReturnRegister
//   FP, extra        as the FramePointerKind says
//
// FP and extra are the only callee-saved registers that frames are found with.
// A row that needs a register which is lost ends the walk.
struct UnwindRow {
  uint32_t pc = 0;         // ElfAddress less the table's base
  int16_t cfa_offset = 0;  // by CfaKind, mostly in words of 8 bytes
  int8_t fp_offset = 0;    // by FramePointerKind, in words
  uint8_t rule = 0;        // low 4 bits CfaKind, high 4 bits FramePointerKind

  friend auto operator<=>(const UnwindRow&, const UnwindRow&) = default;
};
static_assert(sizeof(UnwindRow) == 8);

enum class CfaKind : uint8_t {
  // Nothing is known about this code: try the frame pointer.
  kNoInfo = UNWIND_CFA_NO_INFO,
  // The return address is undefined: this is the outermost frame.
  kEnd = UNWIND_CFA_END,
  // SP + 8 * cfa_offset, and so on with FP and the extra register.
  kStackPointer = UNWIND_CFA_SP,
  kFramePointer = UNWIND_CFA_FP,
  kExtra = UNWIND_CFA_EXTRA,
  // *(SP + 8 * a) + 8 * b, where a is cfa_offset's high and b its low byte,
  // both signed.
  kStackPointerDeref = UNWIND_CFA_SP_DEREF,
  kFramePointerDeref = UNWIND_CFA_FP_DEREF,
  // The linker's stubs on x86-64: SP + 8, and 8 more from their second push on,
  // that is where (RIP & 15) >= cfa_offset.
  kPlt = UNWIND_CFA_PLT,
  // A signal handler's return: SP is at the ucontext, which has the registers.
  // FramePointerKind and both offsets are 0.
  kSignal = UNWIND_CFA_SIGNAL,
  // R + 8 * b, where R is the register with the DWARF number in cfa_offset's
  // high byte (never one with a role) and b its low byte, signed. Such a
  // register is known in the innermost frame only.
  kLeafRegister = UNWIND_CFA_LEAF_REGISTER,
  // SP + 8 * b, and the return address is in R; b and R as before. C libraries
  // keep it there in vfork(), whose two processes have one stack.
  kReturnRegister = UNWIND_CFA_RETURN_REGISTER,
  // SP + 8 * cfa_offset, but the outermost frame where the system call's result
  // is 0: behind clone()'s, which returns 0 to the new thread, on a stack of
  // its
  // own. In the innermost frame only.
  kClone = UNWIND_CFA_CLONE,
  // The call-frame information says something that no row can.
  kUnsupported = UNWIND_CFA_UNSUPPORTED,
};

enum class FramePointerKind : uint8_t {
  // FP and extra are the caller's.
  kSame = UNWIND_FP_SAME,
  // FP is at CFA + 8 * fp_offset, extra the caller's.
  kSaved = UNWIND_FP_SAVED,
  // FP is at CFA + 8 * fp_offset and extra in the word below.
  kSavedExtraBelow = UNWIND_FP_SAVED_EXTRA_BELOW,
  // FP is the caller's, extra at CFA + 8 * fp_offset.
  kSameExtraSaved = UNWIND_FP_SAME_EXTRA_SAVED,
  // Neither is known in the caller.
  kLost = UNWIND_FP_LOST,
  // FP is at CFA + 8 * fp_offset, extra lost.
  kSavedExtraLost = UNWIND_FP_SAVED_EXTRA_LOST,
  // FP is the caller's, extra lost.
  kSameExtraLost = UNWIND_FP_SAME_EXTRA_LOST,
  // FP is at FP + 8 * fp_offset (a realigned stack), extra lost.
  kSavedAtFramePointer = UNWIND_FP_SAVED_AT_FP,
  // FP is at CFA + 8 * fp_offset, and extra 2 words below. The values up to 15
  // say the same with one word more each, up to 9.
  kSavedExtraBelow2 = UNWIND_FP_SAVED_EXTRA_BELOW_2,
};

constexpr CfaKind GetCfaKind(const UnwindRow& row) {
  return static_cast<CfaKind>(row.rule & 15u);
}
constexpr FramePointerKind GetFramePointerKind(const UnwindRow& row) {
  return static_cast<FramePointerKind>(row.rule >> 4);
}
constexpr uint8_t MakeRule(CfaKind cfa,
                           FramePointerKind fp = FramePointerKind::kSame) {
  return static_cast<uint8_t>(static_cast<unsigned>(cfa) |
                              (static_cast<unsigned>(fp) << 4));
}

// The two bytes of cfa_offset in the kinds that divide it.
constexpr int16_t PackCfaOffset(int8_t high, int8_t low) {
  return static_cast<int16_t>(high * 256 + static_cast<uint8_t>(low));
}
constexpr int CfaOffsetHigh(const UnwindRow& row) {
  return row.cfa_offset >> 8;
}
constexpr int CfaOffsetLow(const UnwindRow& row) {
  return static_cast<int8_t>(row.cfa_offset & 0xff);
}

}  // namespace ksym
