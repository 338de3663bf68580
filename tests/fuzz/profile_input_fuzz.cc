// SPDX-License-Identifier: Apache-2.0
// Profiles of other tools: any bytes are one or an error, and what was read can
// be written in each format whose size follows the input's.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/input/profile_input.h"
#include "daemon/output/format.h"
#include "daemon/profile/kind_select.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using profd::OutputFormat;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto profile = profd::ReadProfile(bytes);
  if (!profile) {
    if (profile.error().message().empty()) std::abort();
    return 0;
  }
  if (profile->samples.empty()) std::abort();
  for (const OutputFormat format :
       {OutputFormat::kFolded, OutputFormat::kJson, OutputFormat::kText,
        OutputFormat::kPprof, OutputFormat::kFlamegraph, OutputFormat::kSvg,
        OutputFormat::kSpeedscope}) {
    const std::string text = profd::Render(*profile, format, {});
    // The first of several kinds may have no samples.
    if (text.empty() && !HasSeveralValues(*profile)) std::abort();
    // Our own document says everything.
    if (format == OutputFormat::kJson &&
        profd::Render(*profd::ReadProfile(text), format, {}) != text) {
      std::abort();
    }
  }
  return 0;
}
