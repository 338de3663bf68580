// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/output/options.h"
#include "daemon/output/output_buffer.h"
#include "daemon/profile/profile.h"

namespace profd {

// A flame graph as a picture for documents: 1,200 pixels wide, the command at
// the bottom, no script in it. A frame that would be narrower than a third of a
// pixel is left out. Hovering a frame shows its samples in programs that show
// titles.
void WriteSvg(const Profile& profile, const OutputOptions& options,
              OutputBuffer& out);

}  // namespace profd
