// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/fair_share.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace profd {

uint64_t FairShare(std::vector<uint64_t> wants, uint64_t room) {
  std::ranges::sort(wants);
  for (size_t i = 0; i < wants.size(); ++i) {
    // This one and all that want more share what is left.
    const uint64_t share = room / (wants.size() - i);
    if (wants[i] > share) return share;
    room -= wants[i];
  }
  return std::numeric_limits<uint64_t>::max();
}

}  // namespace profd
