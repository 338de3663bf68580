// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace profd {

// The largest share that each may have of `room`, so that who wants less gets
// all of that and who wants more no more than the others: the largest number c
// for which the sum of min(want, c) is not above `room`. UINT64_MAX when all
// fit. Cost: n log n.
uint64_t FairShare(std::vector<uint64_t> wants, uint64_t room);

}  // namespace profd
