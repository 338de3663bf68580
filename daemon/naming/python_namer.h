// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "daemon/naming/frame_namer.h"
#include "daemon/naming/runtime_frame_name.h"
#include "daemon/profile/runtime_frame.h"

namespace profd {

// Names frames of kPythonCode, e.g. "Handler.get (app.py)", by the names that
// came with the raw profile, and those of kTornFrames and kLockWait, "[torn]"
// and "[waits for the GIL]".
class PythonNamer final : public FrameNamer {
 public:
  static constexpr std::array<RawFrameKind, 3> kKinds = {
      kPythonCode, kTornFrames, kLockWait};
  explicit PythonNamer(RuntimeLines lines) : lines_(lines) {}

  // The frames of the profile that is named next; borrowed.
  void Use(const RuntimeFrameTable& frames) { frames_ = &frames; }
  void Name(const RawFrame& frame, const ksym::ProcessImage* image,
            ProfileBuilder& builder, std::vector<FrameId>& leaf_first) override;

 private:
  RuntimeLines lines_;
  const RuntimeFrameTable* frames_ = nullptr;
};

}  // namespace profd
