// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/dump/thread_list.h"
#include "daemon/output/output_buffer.h"
#include "daemon/profile/profile.h"

namespace profd {

// Threads with equal stacks that do the same and wait for the same, as people
// read them: deadlocks first, then who runs, who wants to, and who is blocked;
// of each the largest groups first. Names are made printable. `profile` is the
// one that the list was made of.
void WriteDumpText(const ThreadList& list, const Profile& profile,
                   OutputBuffer& out);

// Lines that say how many threads there are, how many have no stack and why,
// and how many deadlocks there are. Where there are none of a kind its line is
// missing.
std::vector<std::string> SummaryLines(const ThreadList& list);

// "1.2 s", "340 ms", "2 h 5 min".
std::string TimeText(uint64_t nanoseconds);

}  // namespace profd
