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
    NameRuntimeFrame(found->second, lines_, builder, frame);
    leaf_first.push_back(builder.AddFrame(frame));
    id = found->second.caller;
    if (id == 0) return;
  }
}

}  // namespace profd
