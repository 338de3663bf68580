// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/output/options.h"
#include "daemon/output/output_buffer.h"
#include "daemon/profile/profile.h"

namespace profd {

// Folded stacks, what flamegraph.pl and speedscope read: a line per distinct
// named stack, sorted byte by byte like `LC_ALL=C sort`.
//   comm;user root;...;user leaf;kernel root;...;kernel leaf COUNT
// By pid the first field is comm-PID, by tid comm-PID/TID. A stack that lacks
// its root starts with "[truncated]" or "[truncated: bad-read]"; one that was
// not to be had is "[Missed User Stack]" or "[Missed Kernel Stack]". Names are
// replaced as AppendFoldedName says. Memory: some bits per frame of every line.
void WriteFolded(const Profile& profile, const OutputOptions& options,
                 OutputBuffer& out);

}  // namespace profd
