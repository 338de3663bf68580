// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ksym/unwind/unwind_row.h"

namespace ksym {

// gcc ends a function that realigned its stack with "leave; lea -8(r10), rsp;
// ret", and leaves the rule for RBP as it was: in memory at RBP. After the
// leave that is another frame's. Once the CFA is by RSP, RBP is the caller's
// again; while it is still by r10, that is not known in an epilogue.
class RealignedFrame {
 public:
  UnwindRow Correct(UnwindRow row) {
    if (GetCfaKind(row) == CfaKind::kFramePointerDeref) is_set_up_ = true;
    if (GetFramePointerKind(row) != FramePointerKind::kSavedAtFramePointer)
      return row;
    if (GetCfaKind(row) == CfaKind::kStackPointer) {
      row.fp_offset = 0;
      row.rule =
          MakeRule(CfaKind::kStackPointer, FramePointerKind::kSameExtraLost);
    } else if (GetCfaKind(row) == CfaKind::kLeafRegister && is_set_up_) {
      row.fp_offset = 0;
      row.rule = MakeRule(CfaKind::kLeafRegister, FramePointerKind::kLost);
    }
    return row;
  }

 private:
  bool is_set_up_ = false;
};

}  // namespace ksym
