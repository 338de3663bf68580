// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/profile/raw_profile.h"

namespace profd {

// Adds a later interval of the same capture to `into`. A default-constructed
// `into` becomes the interval.
//
// Counts of equal samples and the accounting are summed. The metadata stays
// that of `into`, but the time reaches to the interval's end and new warnings
// are appended. Stacks are united; one whose id already means other frames
// (the stackid store numbers anew in each interval) gets another id. The
// mappings of one process are united, so that what was unloaded in between
// still resolves; where a process had something else in the same place before,
// it becomes another one with the same pid.
//
// Cost: O(samples of both), as an index of `into` is made each time.
void Merge(RawProfile& into, RawProfile&& interval);

}  // namespace profd
