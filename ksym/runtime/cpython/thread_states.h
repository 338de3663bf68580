// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "ksym/runtime/cpython/interpreter.h"
#include "ksym/runtime/cpython/thread_frames.h"
#include "ksym/runtime/memory.h"

namespace ksym {

// The addresses of a thread's PyThreadState; 0: there is none.
struct CpythonThreadStates {
  uint64_t inner = 0;  // of the interpreter that the thread runs
  uint64_t outer = 0;  // of the interpreter that called the other one
  // It has frames, but it is not known which: `inner` and `outer` are 0.
  bool is_unknown = false;

  friend bool operator==(const CpythonThreadStates&,
                         const CpythonThreadStates&) = default;
};

// Interpreters and thread states that are looked at of a process with several,
// together; the state of a thread without the lock is unknown where there are
// more.
inline constexpr size_t kMaxCpythonStates = 256;

// Finds them as bpf/runtime/cpython_states.bpf.h does. A thread is bound to the
// interpreter that it began with, from 3.12 on to that which ran last. If
// others have a state with frames for it, it runs one inside of the other; up
// to 3.11, with two such and without the lock, it is unknown which. Everything
// there is untrusted. Cost: 10 reads of 24 bytes at most, or two for each
// state.
CpythonThreadStates FindThreadStates(const Memory& memory,
                                     const CpythonInterpreter& interpreter,
                                     const CpythonThread& thread);

}  // namespace ksym
