// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "ksym/unwind/x86_64/frame_facts.h"
#include "ksym/unwind/x86_64/scanned_code.h"

namespace ksym {

// Instructions that are looked at, counting again those that are reached in
// another way, and kStrandSteps for each way that is begun; the rest stays
// unknown. FFmpeg's assembly has 250,000.
inline constexpr size_t kMaxScanSteps = size_t{4} << 20;
// What it costs to begin a way, and to judge it in the end, in instructions.
inline constexpr size_t kStrandSteps = 6;
// Instructions that are kept, of 56 bytes.
inline constexpr size_t kMaxScannedInstructions = size_t{1} << 20;
// What one place is looked at of which only a guess says that it is code.
inline constexpr size_t kMaxGuessSteps = size_t{1} << 14;
// Times that something was found wrong that had been thought to be right, which
// costs as much as all that is known. Assembly and the code of compilers have a
// few.
inline constexpr size_t kMaxReversals = 64;

// How far ScanCode goes. Tests have smaller ones.
struct ScanBounds {
  size_t steps = kMaxScanSteps;
  size_t instructions = kMaxScannedInstructions;
};

// What described code expects of who comes there.
struct CodeElsewhere {
  bool is_code = false;
  // The distance of RSP from the CFA, or FrameFacts::kUnknown.
  int32_t rsp = FrameFacts::kUnknown;
};

// Code that nothing describes. Places count from where the caller likes.
struct CodeToScan {
  std::vector<CodeGap> gaps;  // sorted, none overlaps another or is empty
  ReadCode read;
  // Where functions are known to begin; in any order, also elsewhere.
  std::vector<uint32_t> entries;
  std::function<CodeElsewhere(uint32_t)> elsewhere;
  ScanBounds bounds = {};
};

// Code in [start, end) whose frames are known: one instruction or more.
struct ScannedRange {
  uint32_t start = 0;
  uint32_t end = 0;
  FrameFacts facts;
};

// Says where the frames of functions are, by following how they move RSP, from
// where they begin on all ways that lead on: no byte is taken for code that
// nothing leads to. A function begins where an entry or a call says so. What a
// call returns to is followed too, but counts only if a return comes of it that
// finds RSP at the return address and RBX and RBP as they were, or a call with
// the stack aligned as compilers align it: many calls do not return, and what
// is behind them is another function. By the same proof, that of the return,
// code counts that no direct jump leads to: other functions between those that
// are known, and what jump tables lead to.
//
// Where two ways contradict each other, or code does what a function does not
// do, all that they have in common is unknown. Indirect jumps end a way.
//
// Sorted, and equal neighbours are one range. Time and memory are bounded by
// `bounds`, the other constants above and kMaxCodePages: 200 ns for each step,
// which is 1 s at the most.
std::vector<ScannedRange> ScanCode(CodeToScan code);

}  // namespace ksym
