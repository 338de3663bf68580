// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ksym {

// Longer names stay as they are, and no result is longer than the second:
// template arguments repeat by reference, so a hostile name of a few hundred
// bytes can stand for more text than there is memory.
inline constexpr size_t kMaxMangledBytes = 4096;
inline constexpr size_t kMaxDemangledBytes = 16384;

// The source-level name of a C++ (Itanium ABI), Rust (v0, and legacy without
// its hash) or D symbol; the name itself when it is none of them, too long, or
// beyond the bounds of its language (cpp_symbol.h, rust_v0.h, d_symbol.h).
// A suffix that is not part of the mangling is kept: "f()@plt",
// "f()@@VERSION", "f() [clone .cold]". Thread-safe; microseconds per name, and
// up to 0.1 s at the bounds; at most 1 MiB of stack.
std::string Demangle(std::string_view name);

}  // namespace ksym
