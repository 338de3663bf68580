// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/v8/source_positions.h"

#include "ksym/runtime/v8/number_reader.h"

namespace ksym {
namespace {

// How far code goes on, of an entry. `form`: see V8PositionForm.
std::optional<uint64_t> TakeCode(V8NumberReader& reader, V8PositionForm form) {
  if (form == V8PositionForm::kUnsigned) {
    const auto number = reader.Number();
    // Whether it is a statement, and whether it may be a breakpoint.
    return number ? std::optional(*number >> 2) : std::nullopt;
  }
  const auto difference = reader.Difference();
  if (!difference) return std::nullopt;
  const auto number = static_cast<int64_t>(*difference);
  return number >= 0 ? *difference : ~*difference;
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
  V8NumberReader reader(table);
  uint64_t code = 0;
  uint64_t position = 0;
  std::optional<uint64_t> found;
  while (!reader.is_at_end()) {
    const auto further = TakeCode(reader, form);
    const auto moved = reader.Difference();
    if (!further || !moved) return std::nullopt;
    code += *further;
    position += *moved;
    if (code > offset) break;
    found = position;
  }
  return found ? DecodeV8Position(*found) : std::nullopt;
}

}  // namespace ksym
