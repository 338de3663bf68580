// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/top/profile_ring.h"
#include "daemon/top/top_state.h"
#include "ksym/base/result.h"

namespace profd {

// What a page shows of a window.
struct TopPage {
  ThreadState state = ThreadState::kRunning;  // the time in that state
  ParkedRows parked = ParkedRows::kShown;
};

// The page of a window, a flame graph. `parts` is not empty. Cost: goes over
// every frame of every stack, some tenths of a second for a large window.
ksym::Result<std::string> MakeTopPage(
    const std::vector<ProfileRing::Part>& parts, const TopPage& page);

// Writes it to a new file in the working directory, ksym-top-DATE-TIME.html,
// whose name is returned. Replaces nothing, and leaves nothing where it fails.
ksym::Result<std::string> WriteTopPage(
    const std::vector<ProfileRing::Part>& parts, const TopPage& page);

}  // namespace profd
