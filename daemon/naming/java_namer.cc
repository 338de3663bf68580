// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/java_namer.h"

#include <string>

#include "daemon/profile/frame_kinds.h"
#include "ksym/base/bounded_name.h"

namespace profd {

void JavaNamer::Name(const RawFrame& raw, const ksym::ProcessImage* /*image*/,
                     ProfileBuilder& builder,
                     std::vector<FrameId>& leaf_first) {
  Frame frame;
  frame.kind =
      raw.kind == kJavaInterpreted ? &kJavaInterpretedFrame : &kJavaFrame;
  frame.reason = ksym::Unresolved::kNoSymbol;
  frame.name = builder.Intern("[java]");
  if (frames_ != nullptr) {
    const auto found = frames_->find(raw.value);
    if (found != frames_->end() && !found->second.name.empty()) {
      std::string room;
      frame.reason = ksym::Unresolved::kNone;
      frame.name = builder.Intern(ksym::BoundName(found->second.name, room));
      frame.function = frame.name;
    }
  }
  leaf_first.push_back(builder.AddFrame(frame));
}

}  // namespace profd
