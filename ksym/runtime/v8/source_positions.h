// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ksym {

// A place in a script, as V8 encodes it (src/codegen/source-position.h).
struct V8SourcePosition {
  uint32_t script_offset = 0;  // in characters
  // The number of the inlined call that the code is of; nothing: none.
  std::optional<uint32_t> inlining;

  friend bool operator==(const V8SourcePosition&,
                         const V8SourcePosition&) = default;
};

// Nothing: it is none, or is of other languages' files.
std::optional<V8SourcePosition> DecodeV8Position(uint64_t raw);

// How the table tells how far code goes on: with the bit for statements in the
// sign, up to V8 13, or in a number of its own.
enum class V8PositionForm : uint8_t { kSigned, kUnsigned };

// Looks a place in code up in a source position table
// (src/codegen/source-position-table.cc): variable-length pairs of how far code
// and position go on. That is the last entry that does not lie behind `offset`.
// Nothing: there is none, or the table is none. Reads each byte once at most.
std::optional<V8SourcePosition> FindV8Position(std::span<const std::byte> table,
                                               V8PositionForm form,
                                               uint32_t offset);

}  // namespace ksym
