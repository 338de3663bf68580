// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "daemon/profile/frame_kinds.h"

namespace profd::clickhouse {

// The numbers of frames in `kinds` of a stack's row (docs/fleet.md). Tables
// keep them for years, so none is ever given to another kind.
struct FrameNumber {
  const FrameKind* kind = nullptr;
  uint8_t number = 0;
};

// A mark in place of what is missing: no frame has its kind.
inline constexpr uint8_t kMarkNumber = 0;

inline constexpr std::array<FrameNumber, kFrameKinds.size()> kFrameNumbers = {{
    {.kind = &kUserFrame, .number = 1},
    {.kind = &kInlinedFrame, .number = 2},
    {.kind = &kJitFrame, .number = 3},
    {.kind = &kKernelFrame, .number = 4},
    {.kind = &kInlinedKernelFrame, .number = 5},
    {.kind = &kTrampolineFrame, .number = 6},
    {.kind = &kBpfFrame, .number = 7},
    {.kind = &kPythonFrame, .number = 8},
    {.kind = &kJavaScriptFrame, .number = 9},
    {.kind = &kJavaScriptInlinedFrame, .number = 10},
    {.kind = &kJavaScriptInterpretedFrame, .number = 11},
    {.kind = &kJavaFrame, .number = 12},
    {.kind = &kJavaInlinedFrame, .number = 13},
    {.kind = &kJavaInterpretedFrame, .number = 14},
    {.kind = &kWaitFrame, .number = 15},
    {.kind = &kWakerFrame, .number = 16},
}};

constexpr uint8_t NumberOfKind(const FrameKind* kind) {
  const auto* row = std::ranges::find(kFrameNumbers, kind, &FrameNumber::kind);
  return row == kFrameNumbers.end() ? kMarkNumber : row->number;
}

static_assert(std::ranges::all_of(kFrameKinds,
                                  [](const FrameKind* kind) {
                                    return NumberOfKind(kind) != kMarkNumber;
                                  }),
              "a kind has no number");

}  // namespace profd::clickhouse
