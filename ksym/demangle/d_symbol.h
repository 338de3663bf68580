// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace ksym {

// Longer names stay as they are.
inline constexpr size_t kMaxDBytes = 1024;

// Choices between two readings that libiberty may have in one name. It goes
// back where the first fails, so that each may double its time: 0.1 s for the
// worst name found. 96 of the 16,571 names of Phobos have more.
inline constexpr size_t kMaxDChoices = 10;

// The source-level name of a D symbol ("_D..."); empty where it is none, or
// beyond these bounds. Thread-safe; at most 1 MiB of stack.
std::string DemangleD(const std::string& mangled);

}  // namespace ksym
