// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ksym/runtime/v8/heap.h"

namespace ksym {

// What a SharedFunctionInfo says of the function that somebody wrote. Closures
// that were made of it at different times share it.
struct V8Function {
  // UTF-8, e.g. "handle"; "(anonymous)" if the source gives it no name and V8
  // has found none either.
  std::string name;
  V8Word script;
  // Where its source begins in the script, in characters; nothing: not known.
  std::optional<uint32_t> begin;
};

// What tells a function from another one that takes its place.
struct V8FunctionIdentity {
  uint64_t name = 0;  // words of the object
  uint64_t script = 0;
  uint32_t literal_id = 0;  // its number in the script
  // The script's number, which no other one of the engine has.
  uint32_t script_id = 0;

  friend bool operator==(const V8FunctionIdentity&,
                         const V8FunctionIdentity&) = default;
};

// Nothing: it is no SharedFunctionInfo of a script (any more).
std::optional<V8FunctionIdentity> ReadV8FunctionIdentity(const V8Heap& heap,
                                                         V8Word shared);

// Nothing: it is no SharedFunctionInfo, or its name cannot be read. Some twenty
// reads.
std::optional<V8Function> ReadV8Function(const V8Heap& heap, V8Word shared);

}  // namespace ksym
