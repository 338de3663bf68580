// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ksym/base/address.h"

namespace ksym {

// Where a process keeps the address of the running thread's state.
struct CpythonThreadPlace {
  enum class Kind : uint8_t {
    kNone,
    kKey,     // the value of the pthread key that is at `address`
    kGlobal,  // at `address`, which all threads share
    // A variable of the thread alone:
    kNearThread,  // `distance` from the thread pointer
    kInModule,    // `distance` into what the module's number and an offset, at
                  // `address`, lead to
    kByOffset,    // as kNearThread; the distance is at `address`
  };
  Kind kind = Kind::kNone;
  ElfAddress address;
  int32_t distance = 0;

  friend bool operator==(const CpythonThreadPlace&,
                         const CpythonThreadPlace&) = default;
};

// Which thread-local variable a function returns that does nothing else, as
// _PyThreadState_GetCurrent of CPython 3.12 and later. `at`: of the code. Knows
// what GCC and Clang make of the local-exec, initial-exec, local- and
// general-dynamic models, and descriptors of those in static storage. Cost: 10
// ns per instruction.
std::optional<CpythonThreadPlace> FindReturnedVariable(
    std::span<const std::byte> code, ElfAddress at);

// More of the function is not looked at.
inline constexpr size_t kMaxReturningBytes = 64;

}  // namespace ksym
