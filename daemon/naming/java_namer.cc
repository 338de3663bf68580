// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/java_namer.h"

#include "daemon/profile/frame_kinds.h"

namespace profd {
namespace {

const FrameKind* JavaKindOf(RawFrameKind kind) {
  if (kind == kJavaInterpreted) return &kJavaInterpretedFrame;
  return kind == kJavaInlined ? &kJavaInlinedFrame : &kJavaFrame;
}

}  // namespace

void JavaNamer::Name(const RawFrame& raw, const ksym::ProcessImage* /*image*/,
                     ProfileBuilder& builder,
                     std::vector<FrameId>& leaf_first) {
  Frame frame;
  frame.kind = JavaKindOf(raw.kind);
  frame.reason = ksym::Unresolved::kNoSymbol;
  frame.name = builder.Intern("[java]");
  if (frames_ != nullptr) {
    const auto found = frames_->find(raw.value);
    if (found != frames_->end() && !found->second.name.empty()) {
      NameRuntimeFrame(found->second, lines_, builder, frame);
      // The class says what the file is called, so a name has it for the line.
      if (lines_ == RuntimeLines::kDrop) frame.name = frame.function;
    }
  }
  leaf_first.push_back(builder.AddFrame(frame));
}

}  // namespace profd
