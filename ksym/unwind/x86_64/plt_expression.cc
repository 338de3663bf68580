// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/x86_64/plt_expression.h"

#include <array>
#include <cstring>

namespace ksym {

std::optional<int32_t> ParsePltExpression(
    std::span<const std::byte> expression) {
  constexpr uint8_t kOpLiteral0 = 0x30;
  constexpr uint8_t kOpLiteral15 = 0x3f;
  // breg7 8, breg16 0, lit15, and, litN, ge, lit3, shl, plus.
  constexpr std::array<uint8_t, 11> kPlt = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a,
                                            0x00, 0x2a, 0x33, 0x24, 0x22};
  constexpr size_t kConstantAt = 6;
  if (expression.size() != kPlt.size()) return std::nullopt;
  std::array<uint8_t, kPlt.size()> bytes = {};
  std::memcpy(bytes.data(), expression.data(), bytes.size());
  const uint8_t literal = bytes[kConstantAt];
  bytes[kConstantAt] = 0;
  if (bytes != kPlt || literal < kOpLiteral0 || literal > kOpLiteral15) {
    return std::nullopt;
  }
  return literal - kOpLiteral0;
}

}  // namespace ksym
