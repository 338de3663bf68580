// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace profd {

// The name of x86-64's system call of that number, "futex"; empty: none is
// known, as of those that are newer than this table.
std::string_view SyscallNameX8664(uint32_t number);

}  // namespace profd
