// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/dump/thread_list.h"
#include "daemon/output/output_buffer.h"
#include "daemon/profile/profile.h"

namespace profd {

// The list as docs/formats.md describes it: an object for each thread, each
// stack and each frame once. `profile` is the one that the list was made of.
void WriteDumpJson(const ThreadList& list, const Profile& profile,
                   OutputBuffer& out);

}  // namespace profd
