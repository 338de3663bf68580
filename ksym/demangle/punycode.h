// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ksym {

// Longer identifiers are not decoded: each character is inserted among those
// before it.
inline constexpr size_t kMaxPunycodeCharacters = 512;

// The text in UTF-8 of a name that Rust has mangled by RFC 3492 with "_" for
// "-": "gdel_5qa" is "gödel". None where it is not such a name, stands for what
// is no character, or is longer than kMaxPunycodeCharacters.
std::optional<std::string> DecodePunycode(std::string_view mangled);

}  // namespace ksym
