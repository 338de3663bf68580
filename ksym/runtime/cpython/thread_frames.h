// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/runtime/cpython/interpreter.h"
#include "ksym/runtime/memory.h"

namespace ksym {

// A frame: its code object and the instruction that it is at, in units of two
// bytes.
struct CpythonFrame {
  Address code;
  uint32_t index = 0;

  friend bool operator==(const CpythonFrame&, const CpythonFrame&) = default;
};

// The frames that one call of the evaluation loop works through, leaf first.
struct CpythonRun {
  std::vector<CpythonFrame> frames;
  // An address within the call's native frame; with CpythonLayout::Runs::kEach
  // the word that is there. 0: not known.
  uint64_t anchor = 0;
  bool is_torn = false;  // its frames do not lead to its end
};

struct CpythonFrames {
  std::vector<CpythonRun> runs;  // leaf first
  bool is_cut = false;           // there were more
};

// Frames and ends of runs of a thread, together; more are not read.
inline constexpr size_t kMaxCpythonItems = 1536;

// A thread that runs nothing meanwhile.
struct CpythonThread {
  Address pointer;         // pthread_self()
  uint64_t load_bias = 0;  // of the interpreter's file
};

// Reads a thread's frames as bpf/runtime/cpython.bpf.h does of the thread that
// is sampled: the same rules, and the same bounds. Nothing: the thread has none
// of that interpreter. Everything there is untrusted; a chain that does not
// lead to its end is a torn run. Cost: 2 reads a frame, of 256 bytes at most,
// and 4,000 in all.
std::optional<CpythonFrames> ReadCpythonFrames(
    const Memory& memory, const CpythonInterpreter& interpreter,
    const CpythonThread& thread);

}  // namespace ksym
