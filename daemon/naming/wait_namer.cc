// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/wait_namer.h"

#include "daemon/profile/frame_kinds.h"
#include "daemon/profile/wait_text.h"

namespace profd {

void WaitNamer::Name(const RawFrame& frame, const ksym::ProcessImage* /*image*/,
                     ProfileBuilder& builder,
                     std::vector<FrameId>& leaf_first) {
  leaf_first.push_back(
      builder.AddFrame({.name = builder.Intern(WaitText(WaitReasonOf(frame))),
                        .kind = &kWaitFrame}));
}

}  // namespace profd
