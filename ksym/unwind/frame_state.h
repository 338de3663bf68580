// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ksym/unwind/unwind_row.h"

namespace ksym {

// Where the caller's value of one register is.
struct RegisterRule {
  enum class Kind : uint8_t {
    kSame,            // still in the register
    kUndefined,       // nowhere
    kAtCfa,           // in memory at CFA + offset
    kAtFramePointer,  // in memory at the frame pointer + offset
    kRegister,        // in the register with the number `offset`
    kOther,           // somewhere that no row can say
  };
  Kind kind = Kind::kSame;
  int32_t offset = 0;
};

// What the CFA is.
struct CfaRule {
  enum class Kind : uint8_t {
    kRegister,  // register + offset
    kDeref,     // *(register + offset) + addend
    kPlt,       // CfaKind::kPlt with the constant `offset`
    kOther,     // something that no row can say
  };
  Kind kind = Kind::kOther;
  uint8_t register_number = 0;
  int32_t offset = 0;
  int32_t addend = 0;
};

// What call-frame instructions have said up to some address about those
// registers that rows know.
struct FrameState {
  CfaRule cfa;
  RegisterRule frame_pointer;
  RegisterRule extra;
  RegisterRule return_address = {RegisterRule::Kind::kOther, 0};
};

// The rule of DW_CFA_def_cfa_expression and DW_CFA_expression, of the few forms
// that compilers, linkers and hand-written code use; kOther for the rest. O(1).
CfaRule ParseCfaExpression(std::span<const std::byte> expression);
RegisterRule ParseRegisterExpression(std::span<const std::byte> expression);

// The row that says the same; its pc is 0. kUnsupported if none does.
UnwindRow ToUnwindRow(const FrameState& state);

}  // namespace ksym
