// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/output/options.h"
#include "daemon/output/output_buffer.h"
#include "daemon/profile/profile.h"

namespace profd {

// speedscope's own format (its file-format-spec.ts): inlined calls are frames,
// and files and lines are kept. A profile of all samples, and one for each
// command (process, thread: `by`), the busiest first, at most 100 of them.
// Weights are of the kind's unit where speedscope knows it and the period is
// known, else samples.
void WriteSpeedscope(const Profile& profile, const OutputOptions& options,
                     OutputBuffer& out);

}  // namespace profd
