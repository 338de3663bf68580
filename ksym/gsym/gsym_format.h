// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace ksym {

// GSYM, a file that maps addresses to functions, lines and inlined calls: the
// format of LLVM's llvm/DebugInfo/GSYM, described in docs/gsym.md.

inline constexpr uint32_t kGsymMagic = 0x4753594d;
inline constexpr size_t kGsymMaxUuidBytes = 20;

enum class GsymVersion : uint16_t { k1 = 1, k2 = 2 };

// Version 1; the uuid is always stored with 20 bytes.
inline constexpr size_t kGsymHeaderBytes1 = 48;
// Version 2, which a list of sections follows.
inline constexpr size_t kGsymHeaderBytes2 = 20;
inline constexpr size_t kGsymSectionEntryBytes = 20;

// The sections of version 2.
enum class GsymSection : uint32_t {
  kEnd = 0,
  kAddressOffsets = 1,
  kInfoOffsets = 2,
  kStrings = 3,
  kFiles = 4,
  kFunctions = 5,
  kUuid = 6,
};

// What a function's information consists of.
enum class GsymInfo : uint32_t {
  kEnd = 0,
  kLineTable = 1,
  kInlines = 2,
  kMergedFunctions = 3,
  kCallSites = 4,
};

// The opcodes of a line table; larger ones advance address and line at once.
enum class GsymLineOp : uint8_t {
  kEnd = 0,
  kSetFile = 1,
  kAdvanceAddress = 2,
  kAdvanceLine = 3,
};
inline constexpr uint8_t kGsymFirstSpecialOp = 4;

}  // namespace ksym
