// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ksym/base/address.h"

namespace ksym {

// The fields of markup elements by their type in the format's specification;
// nothing: the text is none.

// %p: "0x" and hexadecimal digits, or only zeros.
std::optional<Address> ParseMarkupAddress(std::string_view text);
// %i: hexadecimal after "0x", octal after "0", else decimal. As in LLVM, also
// binary after "0b" and octal after "0o".
std::optional<uint64_t> ParseMarkupInteger(std::string_view text);
// %x: hexadecimal digits, in lower case. As in LLVM, an odd number of them has
// a 0 in front.
std::optional<std::string> ParseMarkupBytes(std::string_view text);
// The letters "rwx" in that order, each once or not at all, but at least one;
// in lower case.
std::optional<std::string> ParseMarkupMode(std::string_view text);

}  // namespace ksym
