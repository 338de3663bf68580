// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ksym {

// The constant of the CFA expression that GNU ld and those who follow it write
// for .plt (CfaKind::kPlt): the size of "jmp *slot; push index", 0 to 15.
// Nothing for any other expression.
std::optional<int32_t> ParsePltExpression(
    std::span<const std::byte> expression);

}  // namespace ksym
