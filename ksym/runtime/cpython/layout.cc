// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/layout.h"

#include <algorithm>
#include <array>

namespace ksym {
namespace {

struct Known {
  uint8_t minor = 0;
  CpythonLayout layout;
};

// From the DWARF of Debian's and Ubuntu's builds; the micro releases of a minor
// one agree in these.
constexpr std::array<Known, 4> kKnown = {{
    {.minor = 11,
     .layout = {.runs = CpythonLayout::Runs::kAtEntry,
                .has_cframe = true,
                .shim_owner = 0,
                .key = 596,
                .thread_frame = 56,
                .thread_id = 152,
                .cframe_frame = 8,
                .cframe_previous = 16,
                .frame_code = 32,
                .frame_previous = 48,
                .frame_instruction = 56,
                .frame_owner = 69,
                .frame_is_entry = 68,
                .code_first_line = 72,
                .code_first_traceable = 168,
                .code_units = 184,
                .text_ascii = 48,
                .text_other = 72}},
    {.minor = 12,
     .layout = {.runs = CpythonLayout::Runs::kAtShim,
                .has_cframe = true,
                .shim_owner = 3,
                .key = 1548,
                .thread_frame = 56,
                .thread_id = 136,
                .cframe_frame = 0,
                .cframe_previous = 8,
                .frame_code = 0,
                .frame_previous = 8,
                .frame_instruction = 56,
                .frame_owner = 70,
                .frame_is_entry = 0,
                .code_first_line = 68,
                .code_first_traceable = 176,
                .code_units = 192,
                .text_ascii = 40,
                .text_other = 56}},
    {.minor = 13,
     .layout = {.runs = CpythonLayout::Runs::kAtShim,
                .has_cframe = false,
                .shim_owner = 3,
                .key = 2164,
                .thread_frame = 72,
                .thread_id = 152,
                .cframe_frame = 0,
                .cframe_previous = 0,
                .frame_code = 0,
                .frame_previous = 8,
                .frame_instruction = 56,
                .frame_owner = 70,
                .frame_is_entry = 0,
                .code_first_line = 68,
                .code_first_traceable = 184,
                .code_units = 200,
                .text_ascii = 40,
                .text_other = 56}},
    {.minor = 14,
     .layout = {.runs = CpythonLayout::Runs::kAtShim,
                .has_cframe = false,
                .shim_owner = 3,
                .key = 2340,
                .thread_frame = 72,
                .thread_id = 152,
                .cframe_frame = 0,
                .cframe_previous = 0,
                .frame_code = 0,
                .frame_previous = 8,
                .frame_instruction = 56,
                .frame_owner = 74,
                .frame_is_entry = 0,
                .code_first_line = 68,
                .code_first_traceable = 192,
                .code_units = 208,
                .text_ascii = 40,
                .text_other = 56}},
}};

}  // namespace

std::string FormatVersion(const CpythonVersion& version) {
  return std::to_string(version.major) + '.' + std::to_string(version.minor) +
         '.' + std::to_string(version.micro);
}

Result<CpythonLayout> CpythonLayoutOf(const CpythonVersion& version) {
  const auto known = std::ranges::find(kKnown, version.minor, &Known::minor);
  if (version.major != 3 || known == kKnown.end()) {
    return Fail(ErrorCode::kUnsupported,
                "CPython " + FormatVersion(version) +
                    ": only the frames of 3.11 to 3.14 are known");
  }
  return known->layout;
}

}  // namespace ksym
