// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/runtime/v8/heap.h"

namespace ksym {

// A function that code at one place is of.
struct V8CodeFrame {
  V8Word shared;  // SharedFunctionInfo
  std::optional<uint32_t> script_offset;
};

// Code that V8 has compiled.
struct V8Code {
  // Baseline code has no frames here: it is of the function that it runs for.
  bool is_baseline = false;
  // The place in the script, of baseline code; nothing: it is not known.
  std::optional<uint32_t> baseline_offset;
  V8Word object;  // Code
  // Innermost first: functions that are inlined, then the one that they are in.
  std::vector<V8CodeFrame> frames;
};

// The code of an address lies so many bytes before it at the most.
inline constexpr size_t kMaxV8CodeBytes = size_t{256} << 10;
// Inlined calls within each other at one place; with more it is not believed.
inline constexpr size_t kMaxV8Inlined = 64;
// Byte code of one function that is read for the lines of its baseline code.
inline constexpr size_t kMaxV8Bytecode = size_t{256} << 10;

// Finds the code of addresses by its object, which begins somewhere before them
// and has the one map that all have.
class V8CodeFinder {
 public:
  // What the code at `pc` is of: for a return address that of the call before
  // it, 1 byte less. Nothing: there is no code of functions.
  std::optional<V8Code> Find(const V8Heap& heap, Address pc);

 private:
  std::optional<V8Word> FindObject(const V8Heap& heap, Address pc);

  uint64_t map_ = 0;  // that the objects begin with; 0: not seen yet
};

}  // namespace ksym
