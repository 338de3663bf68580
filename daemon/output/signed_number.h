// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace profd {

// For protocol buffers whose numbers are signed: at most what they hold.
inline int64_t ToSigned(uint64_t number) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::min(number, kMax));
}

}  // namespace profd
