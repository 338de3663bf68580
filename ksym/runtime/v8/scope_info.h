// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "ksym/runtime/v8/heap.h"

namespace ksym {

// What a ScopeInfo says of the function that it is of
// (src/objects/scope-info.tq). Words that it does not have are Smis.
struct V8ScopeInfo {
  V8Word function_name;
  V8Word inferred_name;  // as V8 guesses from what it is assigned to
  // Where its source begins in the script; nothing: it does not say.
  std::optional<uint32_t> begin;
};

// Where its words are that may be names: of the function, then its inferred
// one. Nothing: it is no ScopeInfo, or not as known.
std::optional<Address> FindV8ScopeNames(const V8Heap& heap, V8Word word);

// Nothing: it is no ScopeInfo, or not as known.
std::optional<V8ScopeInfo> ReadV8ScopeInfo(const V8Heap& heap, V8Word word);

}  // namespace ksym
