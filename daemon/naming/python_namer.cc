// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/python_namer.h"

#include <string>

#include "daemon/profile/frame_kinds.h"
#include "ksym/base/bounded_name.h"

namespace profd {
namespace {

// "app.py" for "/srv/app.py"; "<frozen importlib._bootstrap>" stays.
std::string_view FileName(std::string_view path) {
  return path.starts_with('<') ? path : path.substr(path.rfind('/') + 1);
}

}  // namespace

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
  const RuntimeFrame& known = found->second;
  std::string room;
  const std::string file(ksym::BoundPath(known.file, room));
  std::string text(ksym::BoundName(known.name, room));
  frame.function = builder.Intern(text);
  text += " (";
  text += FileName(file);
  if (lines_ == Lines::kShow && known.line != 0) {
    text += ':' + std::to_string(known.line);
  }
  text += ')';
  frame.reason = ksym::Unresolved::kNone;
  frame.name = builder.Intern(text);
  frame.file = builder.Intern(file);
  frame.line = known.line;
  frame.first_line = known.first_line;
  leaf_first.push_back(builder.AddFrame(frame));
}

}  // namespace profd
