// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "daemon/naming/frame_namer.h"
#include "daemon/naming/runtime_frame_name.h"
#include "daemon/profile/runtime_frame.h"

namespace profd {

// Names frames of kJavaScriptCode, e.g. "handle (server.js)", by the names that
// came with the raw profile: functions that are inlined, then the one that they
// are in. What could not be read is "[javascript]".
class JavaScriptNamer final : public FrameNamer {
 public:
  // Within each other, at one place; there are no more.
  static constexpr size_t kMaxInlined = 64;
  explicit JavaScriptNamer(RuntimeLines lines) : lines_(lines) {}

  // The frames of the profile that is named next; borrowed.
  void Use(const RuntimeFrameTable& frames) { frames_ = &frames; }
  void Name(const RawFrame& frame, const ksym::ProcessImage* image,
            ProfileBuilder& builder, std::vector<FrameId>& leaf_first) override;

 private:
  RuntimeLines lines_;
  const RuntimeFrameTable* frames_ = nullptr;
};

}  // namespace profd
