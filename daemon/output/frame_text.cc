// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/frame_text.h"

#include <algorithm>

#include "ksym/base/printable.h"

namespace profd {

void AppendLineName(std::string_view name, std::string& out) {
  const size_t spaces = std::min(name.find_first_not_of(' '), name.size());
  out.append(spaces, '_');
  ksym::AppendPrintable(name.substr(spaces), out);
}

void AppendFrameName(const Profile& profile, const Frame& frame,
                     std::string& out) {
  const std::string_view name = profile.String(frame.name);
  AppendLineName(name.empty() ? "[unknown]" : name, out);
}

void AppendFrameModule(const Profile& profile, const Frame& frame,
                       std::string& out) {
  const std::string_view name = profile.String(frame.name);
  const std::string_view module = profile.String(frame.object);
  const bool is_named = frame.reason == ksym::Unresolved::kNone;
  if (module.empty() || !(is_named || name.empty() || name == "[unknown]")) {
    return;
  }
  out += ' ';
  // The kernel's modules have their brackets already.
  if (!frame.kind->is_in_file) {
    ksym::AppendPrintable(module, out);
    return;
  }
  out += '[';
  ksym::AppendPrintable(module.substr(module.rfind('/') + 1), out);
  out += ']';
}

}  // namespace profd
