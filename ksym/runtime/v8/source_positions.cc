// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/v8/source_positions.h"

#include "ksym/base/byte_cursor.h"

namespace ksym {
namespace {

// Numbers are LEB128 (src/base/vlq.h); those with a sign have it in the lowest
// bit.
uint64_t ReadDifference(ByteCursor& in) {
  const uint64_t number = in.ReadUleb128();
  return number >> 1 ^ (0 - (number & 1));
}

// How far code goes on, of an entry. `form`: see V8PositionForm.
uint64_t ReadCodeStep(ByteCursor& in, V8PositionForm form) {
  if (form == V8PositionForm::kUnsigned) {
    // Whether it is a statement, and whether it may be a breakpoint.
    return in.ReadUleb128() >> 2;
  }
  const uint64_t difference = ReadDifference(in);
  return static_cast<int64_t>(difference) >= 0 ? difference : ~difference;
}

}  // namespace

std::optional<V8SourcePosition> DecodeV8Position(uint64_t raw) {
  constexpr uint64_t kExternal = 1;
  constexpr uint64_t kOffsets = 0x3fffffff;  // each less one; 0: none
  constexpr uint64_t kInlinings = 0xffff;
  const uint64_t offset = raw >> 1 & kOffsets;
  const uint64_t inlining = raw >> 31 & kInlinings;
  if ((raw & kExternal) != 0 || offset == 0) return std::nullopt;
  V8SourcePosition position = {
      .script_offset = static_cast<uint32_t>(offset - 1), .inlining = {}};
  if (inlining != 0) position.inlining = static_cast<uint32_t>(inlining - 1);
  return position;
}

std::optional<V8SourcePosition> FindV8Position(std::span<const std::byte> table,
                                               V8PositionForm form,
                                               uint32_t offset) {
  ByteCursor in(table);
  uint64_t code = 0;
  uint64_t position = 0;
  std::optional<uint64_t> found;
  while (!in.AtEnd()) {
    code += ReadCodeStep(in, form);
    position += ReadDifference(in);
    if (!in.ok()) return std::nullopt;
    if (code > offset) break;
    found = position;
  }
  return found ? DecodeV8Position(*found) : std::nullopt;
}

}  // namespace ksym
