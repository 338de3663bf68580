// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/layout.h"

#include <array>

namespace ksym {
namespace {

using Runs = CpythonLayout::Runs;

// From the DWARF of Debian's and Ubuntu's builds; the micro releases of a minor
// one agree in these.
constexpr CpythonLayout k38 = {
    .runs = Runs::kEach,
    .instruction = CpythonLayout::Instruction::kBytes,
    .lines = CpythonLayout::LineTable::kDeltas,
    .key = 1396,
    .holder_before_key = 28,
    .thread_frame = 24,
    .thread_id = 176,
    .frame_bytes = 112,
    .frame_code = 32,
    .frame_previous = 24,
    .frame_instruction = 104,
    .code_bytes = 128,
    .code_size = 48,
    .code_consts = 56,
    .code_first_line = 40,
    .code_file = 104,
    .code_name = 112,
    .code_lines = 120,
    .text_ascii = 48,
    .text_other = 72,
};

constexpr CpythonLayout Make39() {
  CpythonLayout layout = k38;
  layout.key = 588;
  layout.holder_before_key = 20;
  return layout;
}

constexpr CpythonLayout Make310() {
  CpythonLayout layout = Make39();
  layout.instruction = CpythonLayout::Instruction::kUnits;
  layout.lines = CpythonLayout::LineTable::kRanges;
  layout.frame_instruction = 96;
  return layout;
}

constexpr CpythonLayout k311 = {
    .runs = Runs::kToEntry,
    .has_cframe = true,
    .key = 596,
    .holder_before_key = 20,
    .thread_frame = 56,
    .thread_id = 152,
    .cframe_frame = 8,
    .cframe_previous = 16,
    .frame_code = 32,
    .frame_previous = 48,
    .frame_instruction = 56,
    .frame_owner = 69,
    .frame_is_entry = 68,
    .code_bytes = 184,
    .code_first_line = 72,
    .code_first_traceable = 168,
    .code_units = 184,
    .text_ascii = 48,
    .text_other = 72,
};

constexpr CpythonLayout k312 = {
    .runs = Runs::kToShim,
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
    .code_bytes = 192,
    .code_first_line = 68,
    .code_first_traceable = 176,
    .code_units = 192,
    .code_version = 92,
    .text_ascii = 40,
    .text_other = 56,
};

constexpr CpythonLayout Make313() {
  CpythonLayout layout = k312;
  layout.has_cframe = false;
  layout.cframe_previous = 0;
  layout.key = 2164;
  layout.thread_frame = 72;
  layout.thread_id = 152;
  layout.code_bytes = 200;
  layout.code_first_traceable = 184;
  layout.code_units = 200;
  return layout;
}

constexpr CpythonLayout Make314() {
  CpythonLayout layout = Make313();
  layout.key = 2340;
  layout.frame_owner = 74;
  layout.code_bytes = 208;
  layout.code_first_traceable = 192;
  layout.code_units = 208;
  return layout;
}

// Thread states are in variables of the thread alone.
constexpr CpythonLayout Make315() {
  CpythonLayout layout = Make314();
  layout.key = 0;
  layout.thread_id = 176;
  return layout;
}

constexpr uint8_t kFirstMinor = 8;
constexpr std::array<CpythonLayout, 8> kKnown = {
    k38, Make39(), Make310(), k311, k312, Make313(), Make314(), Make315()};

}  // namespace

std::string FormatVersion(const CpythonVersion& version) {
  return std::to_string(version.major) + '.' + std::to_string(version.minor) +
         '.' + std::to_string(version.micro);
}

Result<CpythonLayout> CpythonLayoutOf(const CpythonVersion& version) {
  const size_t number = size_t{version.minor} - kFirstMinor;
  if (version.major != 3 || number >= kKnown.size()) {
    return Fail(ErrorCode::kUnsupported,
                "CPython " + FormatVersion(version) +
                    ": only the frames of 3.8 to 3.15 are known");
  }
  return kKnown[number];
}

}  // namespace ksym
