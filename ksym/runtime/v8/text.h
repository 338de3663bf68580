// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/runtime/v8/heap.h"

namespace ksym {

// Characters of a String that lie beside each other, of one byte (Latin-1) or
// of two (UTF-16) each.
struct V8TextPiece {
  Address data;
  uint32_t characters = 0;
  uint8_t bytes = 1;  // of a character
};

// Where a String's characters are: its own, those of the one that it is a part
// of, and of those that it is put together from. A String of more pieces than
// kMaxV8Pieces, or in more steps than that, is refused.
inline constexpr size_t kMaxV8Pieces = 64;
std::optional<std::vector<V8TextPiece>> FindV8Text(const V8Heap& heap,
                                                   V8Word string);

// A String in UTF-8, cut after so many characters, with an ellipsis. Nothing:
// it is no String or cannot be read.
inline constexpr size_t kMaxV8Text = 1024;
std::optional<std::string> ReadV8Text(const V8Heap& heap, V8Word string);

}  // namespace ksym
