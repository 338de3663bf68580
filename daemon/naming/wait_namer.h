// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "daemon/naming/frame_namer.h"
#include "daemon/profile/wait_reason.h"

namespace profd {

// Names frames of kWaitReason by it.
class WaitNamer final : public FrameNamer {
 public:
  void Name(const RawFrame& frame, const ksym::ProcessImage* image,
            ProfileBuilder& builder, std::vector<FrameId>& leaf_first) override;
};

}  // namespace profd
