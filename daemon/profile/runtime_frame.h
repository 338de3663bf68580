// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "daemon/profile/raw_stack_table.h"

namespace profd {

// Kinds of RawFrame that a language runtime keeps itself.
inline constexpr RawFrameKind kPythonCode = 0x10;
// Frames of a runtime were here that could not be followed; no value.
inline constexpr RawFrameKind kTornFrames = 0x11;
// The thread waits for the runtime's global lock, in the kernel; no value.
inline constexpr RawFrameKind kLockWait = 0x12;
inline constexpr RawFrameKind kJavaScriptCode = 0x13;

// Code of Java: methods, compiled or interpreted, and what else the JVM makes,
// as where native code calls it. bpf/runtime/hotspot_abi.h has the
// same numbers.
inline constexpr RawFrameKind kJavaCompiled = 0x40;
inline constexpr RawFrameKind kJavaInterpreted = 0x41;
inline constexpr RawFrameKind kJavaStub = 0x42;
// A method that is inlined into the frame behind it, on the side of the root.
inline constexpr RawFrameKind kJavaInlined = 0x43;

// All that others ask about a kind of RawFrame that is not native code.
struct RuntimeKind {
  RawFrameKind kind = kNativeCode;
  // `value` is a RuntimeFrameId of the RuntimeFrameTable.
  bool is_in_table = false;
  // The native frame behind a run of them, on the side of the root, is the
  // interpreter's own that works through them.
  bool has_interpreter = false;
};

inline constexpr std::array kRuntimeKinds = {
    RuntimeKind{
        .kind = kPythonCode, .is_in_table = true, .has_interpreter = true},
    RuntimeKind{.kind = kTornFrames},
    RuntimeKind{.kind = kLockWait},
    RuntimeKind{.kind = kJavaScriptCode, .is_in_table = true},
    RuntimeKind{.kind = kJavaCompiled, .is_in_table = true},
    RuntimeKind{.kind = kJavaInterpreted, .is_in_table = true},
    RuntimeKind{.kind = kJavaStub, .is_in_table = true},
    RuntimeKind{.kind = kJavaInlined, .is_in_table = true}};

// Nothing is known of a kind that has no row.
constexpr RuntimeKind RuntimeKindOf(RawFrameKind kind) {
  for (const RuntimeKind& row : kRuntimeKinds) {
    if (row.kind == kind) return row;
  }
  return {.kind = kind};
}

// Within one capture no number is used twice.
using RuntimeFrameId = uint64_t;

// The function that a frame of a runtime's kind stands for, as it was when it
// was sampled.
struct RuntimeFrame {
  std::string name;         // qualified, UTF-8; empty: it could not be read
  std::string file;         // as the runtime knows it, UTF-8
  uint32_t first_line = 0;  // of the function; 0: not known
  uint32_t line = 0;        // 0: not known
  // The runtime knows no line of that place, and the line is one near it; what
  // is said to be inlined is what is there.
  bool line_is_near = false;
  // By the runtime's interpreter, where its kind does not say it.
  bool is_interpreted = false;
  // The function that its code is inlined into, where it was called; 0: none.
  RuntimeFrameId caller = 0;

  friend auto operator<=>(const RuntimeFrame&, const RuntimeFrame&) = default;
};

using RuntimeFrameTable = std::map<RuntimeFrameId, RuntimeFrame>;

}  // namespace profd
