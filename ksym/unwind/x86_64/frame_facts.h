// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "ksym/unwind/x86_64/instruction.h"

namespace ksym {

// What is known of a frame before an instruction. All distances are in bytes,
// downwards from the CFA, which is what RSP was before the call: the return
// address is at a distance of 8.
struct FrameFacts {
  static constexpr int32_t kUnknown = std::numeric_limits<int32_t>::max();
  static constexpr int32_t kInRegister = 0;

  int32_t rsp = 8;         // distance of RSP
  int32_t rbp = kUnknown;  // of RBP; known where it is a frame pointer
  // Where the caller's RBP and RBX were saved; kInRegister: they are unchanged.
  int32_t rbp_saved = kInRegister;
  int32_t rbx_saved = kInRegister;
  // One more register that points into the frame.
  int32_t copy = kUnknown;
  uint8_t copy_register = kNoCodeRegister;
  // When RSP was aligned and its distance is not known: how far it has moved
  // down since, and where below that place a word is that points into the
  // frame, at the distance `kept`.
  int32_t aligned = kUnknown;
  int32_t kept_at = kUnknown;
  int32_t kept = kUnknown;

  // Something says where the CFA is.
  bool IsKnown() const {
    return rsp != kUnknown || rbp != kUnknown || copy != kUnknown || IsKept();
  }
  bool IsKept() const { return aligned != kUnknown && kept_at != kUnknown; }
  bool IsEntry() const {
    return rsp == 8 && rbp_saved == kInRegister && rbx_saved == kInRegister;
  }

  friend bool operator==(const FrameFacts&, const FrameFacts&) = default;
};

// Frames are not larger: 16-bit numbers of words say where their CFA is.
inline constexpr int32_t kMaxFrameDistance = (1 << 18) - 8;

// The facts after an instruction that goes on to the next one, or branches.
// None are known when it does what no compiler lets a function do: takes the
// return address from the stack, or writes over it. A call pushes nothing that
// is left when it returns; see AfterCall().
FrameFacts AfterInstruction(const FrameFacts& before,
                            const Instruction& instruction);

// What is left when the callee, which keeps the registers that the System V ABI
// says, has returned.
FrameFacts AfterCall(const FrameFacts& before);

// What two ways to one place have in common. Nothing is known if they
// contradict each other about where the CFA is.
FrameFacts Common(const FrameFacts& a, const FrameFacts& b);

}  // namespace ksym
