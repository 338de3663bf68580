// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ksym {

// Types and paths within each other in one name, counted where they are read
// through back references as well: the bound of the stack. The deepest name of
// Rust's own toolchain has 93.
inline constexpr size_t kMaxRustDepth = 512;

// The source-level name of a symbol that Rust has mangled by its v0 scheme
// (RFC 2603): "a::b::<i32>" for "_RINvC1a1blE". It has no hashes of crates, no
// types of constants, no suffix (".llvm.1"). Empty where the name is not valid,
// or deeper than kMaxRustDepth, or its text longer than kMaxDemangledBytes, or
// takes more steps than RustReader::kMaxSteps. Thread-safe.
std::string DemangleRustV0(std::string_view mangled);

}  // namespace ksym
