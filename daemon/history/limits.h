// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace profd::history {

// What one file of a history may hold. A reader refuses a file that has more,
// so these bound what a damaged or hostile one costs; a writer begins a new
// file long before (kSeal...). docs/security.md has them as well.
// Each string has ksym::kMaxShownBytes at the most.
inline constexpr size_t kMaxStrings = size_t{1} << 19;
inline constexpr size_t kMaxTextBytes = size_t{32} << 20;
inline constexpr size_t kMaxFunctions = size_t{1} << 19;
inline constexpr size_t kMaxNodes = size_t{1} << 20;
inline constexpr size_t kMaxSeries = size_t{1} << 18;
inline constexpr size_t kMaxRows = size_t{1} << 20;
// Names of pods and containers, of cgroups.
inline constexpr size_t kMaxCgroupNames = size_t{1} << 16;
// What says that it was thinned out.
inline constexpr size_t kMaxThinnings = 1;
// Flames that a segment stores: of each kind of samples, and of none; their
// roots and nodes together.
inline constexpr size_t kMaxFlames = 17;
inline constexpr size_t kMaxFlameRoots = size_t{1} << 16;
inline constexpr size_t kMaxFlameNodes = size_t{1} << 19;
inline constexpr size_t kMaxParts = size_t{1} << 16;
// Functions of the stacks of all rows that differ from the row before: what
// there is to walk through.
inline constexpr uint64_t kMaxStackSteps = uint64_t{1} << 28;
// Functions of one stack; more than any that is sampled.
inline constexpr size_t kMaxStackDepth = 4096;
// Settings, and kinds of samples in all of them.
inline constexpr size_t kMaxSettings = 4096;
// Bytes of a file, and of one column when it is unpacked.
inline constexpr size_t kMaxStoredBytes = size_t{64} << 20;
inline constexpr size_t kMaxColumnBytes = size_t{32} << 20;
// Counters of a part, on average: more than there are names.
inline constexpr size_t kMaxCountersOfPart = 32;
// Files of one directory.
inline constexpr size_t kMaxHistoryFiles = 65'536;

}  // namespace profd::history
