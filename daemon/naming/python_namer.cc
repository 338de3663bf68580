// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/python_namer.h"

#include "daemon/profile/frame_kinds.h"

namespace profd {

void PythonNamer::Name(const RawFrame& raw, const ksym::ProcessImage* /*image*/,
                       ProfileBuilder& builder,
                       std::vector<FrameId>& leaf_first) {
  Frame frame;
  frame.kind = &kPythonFrame;
  frame.reason = ksym::Unresolved::kNoSymbol;
  if (raw.kind == kTornFrames) {
    frame.name = builder.Intern("[torn]");
    leaf_first.push_back(builder.AddFrame(frame));
    return;
  }
  if (raw.kind == kLockWait) {
    frame.reason = ksym::Unresolved::kNone;
    frame.name = builder.Intern("[waits for the GIL]");
    leaf_first.push_back(builder.AddFrame(frame));
    return;
  }
  const auto found = frames_ == nullptr ? RuntimeFrameTable::const_iterator()
                                        : frames_->find(raw.value);
  // Its code could not be read, or came too late: a frame without a name.
  if (frames_ == nullptr || found == frames_->end() ||
      found->second.name.empty()) {
    frame.name = builder.Intern("[python]");
    leaf_first.push_back(builder.AddFrame(frame));
    return;
  }
  NameRuntimeFrame(found->second, lines_, builder, frame);
  leaf_first.push_back(builder.AddFrame(frame));
}

}  // namespace profd
