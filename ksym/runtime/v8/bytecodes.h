// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ksym {

// How long instructions of V8's byte code are. Each has some bytes of fixed
// length, its own among them, and some operands whose length is that of the
// prefix before it: 1 byte, or 2 or 4.
struct V8Bytecodes {
  // A digit for each byte code.
  std::string_view fixed;
  std::string_view scaled;

  // The bytes of the instruction that begins there, with its prefix; nothing:
  // there is none.
  std::optional<size_t> SizeAt(std::span<const std::byte> code,
                               size_t offset) const;
};

// Those of the version, as V8Layout has it; empty ones: it is not known.
V8Bytecodes V8BytecodesOf(std::string_view version);

// The instruction that baseline code is of, `offset` bytes from the code's
// begin, as an offset in the byte code: it is compiled one instruction after
// the other, and `table` says how much code each one became
// (src/baseline/bytecode-offset-iterator.h). Code in front of the first one
// counts as its own. Nothing: it does not hold up. Cost: reads both up to
// there.
std::optional<uint32_t> FindV8BaselineOffset(
    std::span<const std::byte> table, std::span<const std::byte> bytecode,
    const V8Bytecodes& bytecodes, uint64_t offset);

}  // namespace ksym
