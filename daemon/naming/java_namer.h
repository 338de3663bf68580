// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "daemon/naming/frame_namer.h"
#include "daemon/naming/runtime_frame_name.h"
#include "daemon/profile/runtime_frame.h"

namespace profd {

// Names methods of Java, e.g. "com.example.Server.handle", with lines
// "com.example.Server.handle (Server.java:42)", by what came with the raw
// profile, and other code as the JVM calls it; "[java]": it was gone before it
// could be read.
class JavaNamer final : public FrameNamer {
 public:
  static constexpr std::array<RawFrameKind, 4> kKinds = {
      kJavaCompiled, kJavaInterpreted, kJavaStub, kJavaInlined};
  explicit JavaNamer(RuntimeLines lines) : lines_(lines) {}

  // The frames of the profile that is named next; borrowed.
  void Use(const RuntimeFrameTable& frames) { frames_ = &frames; }
  void Name(const RawFrame& frame, const ksym::ProcessImage* image,
            ProfileBuilder& builder, std::vector<FrameId>& leaf_first) override;

 private:
  RuntimeLines lines_;
  const RuntimeFrameTable* frames_ = nullptr;
};

}  // namespace profd
