// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace ksym {

// How to get from a frame to its caller, for the code from `pc` on up to the
// next row's. What a program's call-frame information says (DWARF 5, 6.4), cut
// down to what x86-64 compilers really write, so that the sampler can keep
// millions of rows and follow them in the kernel, where the same 8 bytes are
// declared again.
//
// The caller's registers follow from this frame's:
//
//   CFA   as the CfaKind says
//   RSP   CFA
//   RIP   the word at CFA - 8, but for kReturnRegister
//   RBP, RBX as the RbpKind says
//
// RBP and RBX are the only callee-saved registers that frames are found with.
// A row that needs a register which is lost ends the walk.
struct UnwindRow {
  uint32_t pc = 0;         // ElfAddress less the table's base
  int16_t cfa_offset = 0;  // by CfaKind, mostly in words of 8 bytes
  int8_t rbp_offset = 0;   // by RbpKind, in words
  uint8_t rule = 0;        // low 4 bits CfaKind, high 4 bits RbpKind

  friend auto operator<=>(const UnwindRow&, const UnwindRow&) = default;
};
static_assert(sizeof(UnwindRow) == 8);

enum class CfaKind : uint8_t {
  // Nothing is known about this code: try the frame pointer.
  kNoInfo = 0,
  // The return address is undefined: this is the outermost frame.
  kEnd = 1,
  // RSP + 8 * cfa_offset, and so on with RBP and RBX.
  kRsp = 2,
  kRbp = 3,
  kRbx = 4,
  // *(RSP + 8 * a) + 8 * b, where a is cfa_offset's high and b its low byte,
  // both signed.
  kRspDeref = 5,
  kRbpDeref = 6,
  // The linker's stubs: RSP + 8, and 8 more from their second push on, that is
  // where (RIP & 15) >= cfa_offset.
  kPlt = 7,
  // A signal handler's return: RSP is at the ucontext, which has the
  // registers. RbpKind and both offsets are 0.
  kSignal = 8,
  // R + 8 * b, where R is the register with the DWARF number in cfa_offset's
  // high byte (System V ABI, figure 3.36; never RBX, RBP or RSP) and b its low
  // byte, signed. Such a register is known in the innermost frame only.
  kLeafRegister = 9,
  // RSP + 8 * b, and the return address is in R; b and R as before. C libraries
  // keep it there in vfork(), whose two processes have one stack.
  kReturnRegister = 10,
  // RSP + 8 * cfa_offset, but the outermost frame where RAX is 0: behind
  // clone()'s system call, which returns 0 to the new thread, on a stack of its
  // own. In the innermost frame only.
  kClone = 11,
  // The call-frame information says something that no row can.
  kUnsupported = 15,
};

enum class RbpKind : uint8_t {
  // RBP and RBX are the caller's.
  kSame = 0,
  // RBP is at CFA + 8 * rbp_offset, RBX the caller's.
  kSaved = 1,
  // RBP is at CFA + 8 * rbp_offset and RBX in the word below.
  kSavedRbxBelow = 2,
  // RBP is the caller's, RBX at CFA + 8 * rbp_offset.
  kSameRbxSaved = 3,
  // Neither is known in the caller.
  kLost = 4,
  // RBP is at CFA + 8 * rbp_offset, RBX lost.
  kSavedRbxLost = 5,
  // RBP is the caller's, RBX lost.
  kSameRbxLost = 6,
  // RBP is at RBP + 8 * rbp_offset (a realigned stack), RBX lost.
  kSavedAtRbp = 7,
  // RBP is at CFA + 8 * rbp_offset, and RBX 2 words below. The values up to 15
  // say the same with one word more each, up to 9.
  kSavedRbxBelow2 = 8,
};

constexpr CfaKind GetCfaKind(const UnwindRow& row) {
  return static_cast<CfaKind>(row.rule & 15u);
}
constexpr RbpKind GetRbpKind(const UnwindRow& row) {
  return static_cast<RbpKind>(row.rule >> 4);
}
constexpr uint8_t MakeRule(CfaKind cfa, RbpKind rbp = RbpKind::kSame) {
  return static_cast<uint8_t>(static_cast<unsigned>(cfa) |
                              (static_cast<unsigned>(rbp) << 4));
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
