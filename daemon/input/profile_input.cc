// SPDX-License-Identifier: Apache-2.0
#include "daemon/input/profile_input.h"

#include <algorithm>

#include "daemon/input/folded_input.h"
#include "daemon/input/json_input.h"
#include "daemon/input/perf_script_input.h"
#include "daemon/input/pprof_input.h"

namespace profd {
namespace {

// Control characters that no text has; an unpacked pprof begins with one.
bool IsBinary(std::string_view bytes) {
  return std::ranges::any_of(bytes.substr(0, 512), [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\r' &&
           c != '\t' && c != '\f' && c != '\x1b';
  });
}

}  // namespace

bool IsRawCapture(std::string_view bytes) {
  return bytes.starts_with("KSYMRAW\n");
}

ksym::Result<Profile> ReadProfile(std::string_view bytes) {
  if (bytes.starts_with("PERFILE2")) {
    return ksym::Fail(ksym::ErrorCode::kUnsupported,
                      "is perf's own data: give what `perf script` prints of "
                      "it");
  }
  const size_t text = bytes.find_first_not_of(" \t\r\n");
  if (text == std::string_view::npos) {
    return ksym::Fail(ksym::ErrorCode::kInvalid, "is empty");
  }
  if (bytes[text] == '{') return ReadJson(bytes);
  if (bytes.starts_with("\x1f\x8b") || IsBinary(bytes)) return ReadPprof(bytes);
  if (LooksLikePerfScript(bytes)) return ReadPerfScript(bytes);
  // Last: nearly any text could be that.
  return ReadFolded(bytes);
}

}  // namespace profd
