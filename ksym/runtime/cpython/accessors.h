// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ksym/base/address.h"

namespace ksym {

// CPython exports functions that do nothing but return a member of one of its
// structs, whose layout each version has another one of. Their code says where
// the member is. Knows what GCC and Clang make of them, with frame pointers and
// without. Cost: 10 ns per instruction.

// The offset of the 8 bytes that a function returns of its first argument, as
// PyInterpreterState_Next. Nothing: the function does something else.
std::optional<uint16_t> FindReturnedMember(std::span<const std::byte> code);

// The address of the 8 bytes that a function without arguments returns of a
// variable of the file, as PyInterpreterState_Head of _PyRuntime. `at`: of the
// code. `variable`: its address, which the code may take from a table of the
// dynamic linker's.
std::optional<ElfAddress> FindReturnedWord(std::span<const std::byte> code,
                                           ElfAddress at, ElfAddress variable);

// More of the function is not looked at.
inline constexpr size_t kMaxAccessorBytes = 32;

}  // namespace ksym
