// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/javascript_namer.h"

#include "daemon/profile/frame_kinds.h"

namespace profd {

void JavaScriptNamer::Name(const RawFrame& raw,
                           const ksym::ProcessImage* /*image*/,
                           ProfileBuilder& builder,
                           std::vector<FrameId>& leaf_first) {
  RuntimeFrameId id = raw.value;
  // A file may say of a function that it is inlined into itself.
  for (size_t inlined = 0; inlined <= kMaxInlined; ++inlined) {
    Frame frame;
    frame.kind = &kJavaScriptFrame;
    frame.reason = ksym::Unresolved::kNoSymbol;
    const auto found = frames_ == nullptr ? RuntimeFrameTable::const_iterator()
                                          : frames_->find(id);
    if (frames_ == nullptr || found == frames_->end() ||
        found->second.name.empty()) {
      frame.name = builder.Intern("[javascript]");
      leaf_first.push_back(builder.AddFrame(frame));
      return;
    }
    const RuntimeFrame& known = found->second;
    if (known.caller != 0) {
      frame.kind = &kJavaScriptInlinedFrame;
    } else if (known.is_interpreted) {
      frame.kind = &kJavaScriptInterpretedFrame;
    }
    NameRuntimeFrame(known, lines_, builder, frame);
    leaf_first.push_back(builder.AddFrame(frame));
    id = known.caller;
    if (id == 0) return;
  }
}

}  // namespace profd
