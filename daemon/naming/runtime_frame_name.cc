// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/runtime_frame_name.h"

#include <string>
#include <string_view>

#include "ksym/base/bounded_name.h"

namespace profd {
namespace {

// "app.py" for "/srv/app.py"; "<frozen importlib._bootstrap>" and
// "node:internal/timers" stay.
std::string_view FileName(std::string_view path) {
  return path.starts_with('<') || path.starts_with("node:")
             ? path
             : path.substr(path.rfind('/') + 1);
}

}  // namespace

void NameRuntimeFrame(const RuntimeFrame& known, RuntimeLines lines,
                      ProfileBuilder& builder, Frame& frame) {
  std::string room;
  const std::string file(ksym::BoundPath(known.file, room));
  std::string text(ksym::BoundName(known.name, room));
  frame.function = builder.Intern(text);
  // Text that was evaluated has no file.
  if (!file.empty()) {
    text += " (";
    text += FileName(file);
    if (lines == RuntimeLines::kShow && known.line != 0) {
      text += ':' + std::to_string(known.line);
    }
    text += ')';
  }
  frame.reason = ksym::Unresolved::kNone;
  frame.name = builder.Intern(text);
  frame.file = builder.Intern(file);
  frame.line = known.line;
  frame.first_line = known.first_line;
  frame.line_is_near = known.line_is_near;
}

}  // namespace profd
