// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

#include "ksym/unwind/unwind_row.h"

namespace ksym {

// Adds "rsp+16" or "cfa-8" as readelf does.
inline std::string DescribePlace(const std::string& base, int words) {
  return base + (words < 0 ? "-" : "+") + std::to_string(std::abs(words) * 8);
}

inline std::string DescribeCfa(const UnwindRow& row) {
  constexpr std::array<const char*, 16> kRegisters = {
      "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
      "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  const int high = CfaOffsetHigh(row);
  const int low = CfaOffsetLow(row);
  switch (GetCfaKind(row)) {
    case CfaKind::kNoInfo:
      return "no info";
    case CfaKind::kEnd:
      return "end";
    case CfaKind::kStackPointer:
      return DescribePlace("rsp", row.cfa_offset);
    case CfaKind::kFramePointer:
      return DescribePlace("rbp", row.cfa_offset);
    case CfaKind::kExtra:
      return DescribePlace("rbx", row.cfa_offset);
    case CfaKind::kStackPointerDeref:
      return DescribePlace("*(" + DescribePlace("rsp", high) + ")", low);
    case CfaKind::kFramePointerDeref:
      return DescribePlace("*(" + DescribePlace("rbp", high) + ")", low);
    case CfaKind::kPlt:
      return "plt " + std::to_string(row.cfa_offset);
    case CfaKind::kSignal:
      return "signal";
    case CfaKind::kLeafRegister:
      return DescribePlace(kRegisters.at(static_cast<unsigned>(high)), low);
    case CfaKind::kReturnRegister:
      return DescribePlace("rsp", low) + ", ra " +
             kRegisters.at(static_cast<unsigned>(high));
    case CfaKind::kClone:
      return "clone " + DescribePlace("rsp", row.cfa_offset);
    case CfaKind::kUnsupported:
      return "unsupported";
  }
  return "unknown kind";
}

// `at` is the offset in words.
inline std::string DescribeRegisters(FramePointerKind kind, int at) {
  std::string rbp = ", rbp " + DescribePlace("cfa", at);
  switch (kind) {
    case FramePointerKind::kSame:
      return "";
    case FramePointerKind::kSaved:
      return rbp;
    case FramePointerKind::kSavedExtraBelow:
      return rbp + ", rbx " + DescribePlace("cfa", at - 1);
    case FramePointerKind::kSameExtraSaved:
      return ", rbx " + DescribePlace("cfa", at);
    case FramePointerKind::kLost:
      return ", lost";
    case FramePointerKind::kSavedExtraLost:
      return rbp + ", rbx lost";
    case FramePointerKind::kSameExtraLost:
      return ", rbx lost";
    case FramePointerKind::kSavedAtFramePointer:
      return ", rbp " + DescribePlace("rbp", at) + ", rbx lost";
    default:
      return rbp + ", rbx " +
             DescribePlace("cfa", at - (static_cast<int>(kind) - 6));
  }
}

// "rsp+24, rbp cfa-16, rbx cfa-24": what the caller's registers are.
inline std::string DescribeRow(const UnwindRow* row) {
  if (row == nullptr) return "none";
  return DescribeCfa(*row) +
         DescribeRegisters(GetFramePointerKind(*row), row->fp_offset);
}

}  // namespace ksym
