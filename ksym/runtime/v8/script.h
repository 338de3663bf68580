// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ksym/runtime/v8/heap.h"

namespace ksym {

// A Script of V8: a file, a module, or text that was evaluated.
struct V8Script {
  int32_t id = 0;           // no other script of the engine has it
  std::string name;         // UTF-8; empty: it has none, as evaluated text
  uint32_t first_line = 0;  // what is before it in its file, in lines
  // Where lines end, in characters; empty: not known.
  std::vector<uint32_t> line_ends;

  // From 1 on; 0: not known.
  uint32_t LineOf(uint32_t offset) const;
};

// A script with more characters, or of more lines, has no lines.
inline constexpr size_t kMaxV8SourceBytes = size_t{16} << 20;
inline constexpr size_t kMaxV8Lines = size_t{1} << 20;

// The number of the script alone, which costs less.
std::optional<int32_t> ReadV8ScriptId(const V8Heap& heap, V8Word script);

// Reads it, with the line ends that V8 knows, or by its text. Nothing: it is no
// Script. Reads kMaxV8SourceBytes and kMaxV8Lines words at the most.
std::optional<V8Script> ReadV8Script(const V8Heap& heap, V8Word script);

}  // namespace ksym
