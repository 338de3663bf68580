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
  // Which frames one call of the evaluation loop works through.
  enum class Runs : uint8_t {
    kToEntry,  // up to the one that is marked as the call's first one
    kToShim,   // those before a frame that lies on the C stack
    kEach,     // one: frames are objects on the heap
  };
  // What a frame says of the instruction that it is at.
  enum class Instruction : uint8_t { kAddress, kBytes, kUnits };
  enum class LineTable : uint8_t {
    kDeltas,     // pairs of a step in code and one in lines, up to 3.9
    kRanges,     // the same with code that has no line, 3.10
    kLocations,  // entries with columns, from 3.11 on
  };
  Runs runs = Runs::kToShim;
  Instruction instruction = Instruction::kAddress;
  LineTable lines = LineTable::kLocations;
  // PyThreadState::cframe points to what points to the frame.
  bool has_cframe = false;
  uint8_t shim_owner = 0;  // of _PyInterpreterFrame::owner
  // _PyRuntimeState: the pthread key of threads; 0: there is none.
  uint16_t key = 0;
  // How far before the key the state of the thread that holds the global lock
  // is; 0: not there.
  uint16_t holder_before_key = 0;
  // PyThreadState.
  uint16_t thread_frame = 0;  // current_frame, cframe or frame
  uint16_t thread_id = 0;
  // _PyCFrame.
  uint16_t cframe_frame = 0;
  uint16_t cframe_previous = 0;
  // _PyInterpreterFrame, or PyFrameObject.
  uint16_t frame_bytes = 80;
  uint16_t frame_code = 0;
  uint16_t frame_previous = 0;
  uint16_t frame_instruction = 0;
  uint16_t frame_owner = 0;
  uint16_t frame_is_entry = 0;
  // PyCodeObject.
  uint16_t code_bytes = 0;  // of what is read
  uint16_t code_size = 16;  // of the instructions, or the object that has them
  uint16_t code_consts = 24;
  uint16_t code_first_line = 0;
  uint16_t code_first_traceable = 0;
  uint16_t code_units = 0;  // the instructions; 0: they are elsewhere
  uint16_t code_file = 112;
  uint16_t code_name = 128;  // the qualified one where there is one
  uint16_t code_lines = 136;
  // A number that no other code object of the process has; 0: there is none.
  uint16_t code_version = 0;
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
  // PyThreadState.
  static constexpr uint64_t kNextThread = 8;
  static constexpr uint64_t kInterpreter = 16;
};

// kUnsupported, with the reason, for versions that are not known.
Result<CpythonLayout> CpythonLayoutOf(const CpythonVersion& version);

}  // namespace ksym
