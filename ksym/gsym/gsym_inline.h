// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "ksym/base/byte_cursor.h"

namespace ksym {

// One node of a function's tree of inlined calls, as it is stored: its ranges,
// whether nodes follow that are within it, and what it is. The tree is in
// preorder; a node without ranges ends a list of siblings.
struct GsymInlineNode {
  uint64_t first_start = 0;  // what its children's ranges count from
  uint64_t name = 0;         // a string's offset
  uint32_t call_file = 0;
  uint32_t call_line = 0;
  bool has_children = false;
  bool contains = false;     // the address that was asked for
  bool is_function = false;  // the root; set by GsymFunctionIndex only
};

// Steps through such a tree.
class GsymInlineReader {
 public:
  GsymInlineReader(ByteCursor in, size_t string_bytes)
      : in_(in), string_bytes_(string_bytes) {}

  bool ok() const { return in_.ok(); }

  // Reads the next node, whose ranges count from `base`; `visit` gets each
  // range. False at the end of the siblings, or of the bytes.
  template <typename Visit>
  bool Next(uint64_t base, GsymInlineNode& node, Visit&& visit) {
    const uint64_t count = in_.ReadUleb128();
    if (count == 0) return false;
    if (count > in_.remaining()) in_.Skip(count);  // fails
    for (uint64_t i = 0; i < count && in_.ok(); ++i) {
      const uint64_t start = base + in_.ReadUleb128();
      const uint64_t size = in_.ReadUleb128();
      if (i == 0) node.first_start = start;
      visit(start, size);
    }
    node.has_children = in_.Read<uint8_t>() != 0;
    node.name = in_.ReadSized(string_bytes_);
    node.call_file = NarrowIndex(in_.ReadUleb128());
    node.call_line = static_cast<uint32_t>(in_.ReadUleb128());
    return in_.ok();
  }

  // Passes over the children of a node that has some.
  void SkipChildren() {
    for (uint64_t depth = 1; depth > 0 && in_.ok();) {
      const uint64_t count = in_.ReadUleb128();
      if (count == 0) {
        --depth;
        continue;
      }
      for (uint64_t i = 0; i < 2 * count && in_.ok(); ++i) in_.SkipLeb128();
      if (in_.Read<uint8_t>() != 0) ++depth;
      in_.Skip(string_bytes_);
      in_.SkipLeb128();
      in_.SkipLeb128();
    }
  }

 private:
  // A number that no file has rather than another file's.
  static uint32_t NarrowIndex(uint64_t value) {
    constexpr uint64_t kMax = std::numeric_limits<uint32_t>::max();
    return static_cast<uint32_t>(value < kMax ? value : kMax);
  }

  ByteCursor in_;
  size_t string_bytes_;
};

}  // namespace ksym
