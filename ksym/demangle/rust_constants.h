// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ksym {

// The text of a constant in a name of Rust's v0 scheme, without a sign: "10"
// for 'j' and "a", "'a'" for 'c' and "61". `type` is the letter of its type, an
// integer's if neither 'b' nor 'c'; `digits` are its value's in hexadecimal, at
// least one. An integer of more than 64 bits stays so: "0x...". None where it
// is no value of the type.
std::optional<std::string> RustConstant(char type, std::string_view digits);

}  // namespace ksym
