// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "ksym/base/result.h"

namespace ksym {

// Py_Version's parts, e.g. 3.11.2.
struct CpythonVersion {
  uint8_t major = 0;
  uint8_t minor = 0;
  uint8_t micro = 0;

  // From what Py_Version has: a byte each, then one of the release's level.
  static constexpr CpythonVersion FromHex(uint64_t hex) {
    return {.major = static_cast<uint8_t>(hex >> 24),
            .minor = static_cast<uint8_t>(hex >> 16),
            .micro = static_cast<uint8_t>(hex >> 8)};
  }
  friend bool operator==(const CpythonVersion&,
                         const CpythonVersion&) = default;
};

// "3.11.2".
std::string FormatVersion(const CpythonVersion& version);

// Where a default build of CPython for x86-64 keeps what is read of it: offsets
// in bytes into the structs of that name.
struct CpythonLayout {
  // How runs of frames that one call of the evaluation loop works through end.
  enum class Runs : uint8_t {
    kAtEntry,  // with a frame that is marked as the call's first one
    kAtShim,   // before a frame that lies on the C stack
  };
  Runs runs = Runs::kAtShim;
  // PyThreadState::cframe points to what points to the frame.
  bool has_cframe = false;
  uint8_t shim_owner = 0;  // of _PyInterpreterFrame::owner
  uint16_t key = 0;        // _PyRuntimeState: the pthread key of threads
  // PyThreadState.
  uint16_t thread_frame = 0;  // current_frame, or cframe
  uint16_t thread_id = 0;
  // _PyCFrame.
  uint16_t cframe_frame = 0;
  uint16_t cframe_previous = 0;
  // _PyInterpreterFrame.
  uint16_t frame_code = 0;
  uint16_t frame_previous = 0;
  uint16_t frame_instruction = 0;
  uint16_t frame_owner = 0;
  uint16_t frame_is_entry = 0;
  // PyCodeObject.
  uint16_t code_first_line = 0;
  uint16_t code_first_traceable = 0;
  uint16_t code_units = 0;  // the instructions
  // PyASCIIObject and PyCompactUnicodeObject: the text.
  uint16_t text_ascii = 0;
  uint16_t text_other = 0;

  friend bool operator==(const CpythonLayout&, const CpythonLayout&) = default;
};

// The same in all versions that are known.
struct CpythonOffsets {
  static constexpr uint64_t kType = 8;        // PyObject
  static constexpr uint64_t kSize = 16;       // PyVarObject, PyASCIIObject
  static constexpr uint64_t kTextState = 32;  // PyASCIIObject
  static constexpr uint64_t kBytesData = 32;  // PyBytesObject
  static constexpr uint64_t kCodeFile = 112;  // PyCodeObject
  static constexpr uint64_t kCodeName = 120;
  static constexpr uint64_t kCodeQualified = 128;
  static constexpr uint64_t kCodeLines = 136;
};

// kUnsupported, with the reason, for versions that are not known.
Result<CpythonLayout> CpythonLayoutOf(const CpythonVersion& version);

}  // namespace ksym
