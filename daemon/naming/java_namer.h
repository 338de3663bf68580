// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "daemon/naming/frame_namer.h"
#include "daemon/profile/runtime_frame.h"

namespace profd {

// Names methods of Java, e.g. "com.example.Server.handle", by the names that
// came with the raw profile, and other code as the JVM calls it; "[java]": it
// was gone before it could be read.
class JavaNamer final : public FrameNamer {
 public:
  static constexpr std::array<RawFrameKind, 3> kKinds = {
      kJavaCompiled, kJavaInterpreted, kJavaStub};

  // The frames of the profile that is named next; borrowed.
  void Use(const RuntimeFrameTable& frames) { frames_ = &frames; }
  void Name(const RawFrame& frame, const ksym::ProcessImage* image,
            ProfileBuilder& builder, std::vector<FrameId>& leaf_first) override;

 private:
  const RuntimeFrameTable* frames_ = nullptr;
};

}  // namespace profd
