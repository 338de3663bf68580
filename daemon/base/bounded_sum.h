// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

namespace profd {

// Adds; a sum that 64 bits do not hold stays the largest that they do. Files
// and databases can say what makes one.
inline void AddUpTo64Bits(uint64_t& sum, uint64_t value) {
  constexpr uint64_t kTop = std::numeric_limits<uint64_t>::max();
  sum = value > kTop - sum ? kTop : sum + value;
}

}  // namespace profd
