// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
#include "ksym/runtime/cpython/eval_frame.h"
#include "ksym/runtime/cpython/layout.h"
#include "ksym/runtime/cpython/thread_place.h"

namespace ksym {

// Where the states of all threads are, by interpreter: a process may make
// several, and a thread may run one inside the other.
struct CpythonThreadLists {
  ElfAddress newest;  // has the address of the newest PyInterpreterState
  // PyInterpreterState: the next older one, and its first PyThreadState.
  uint16_t interpreter_next = 0;
  uint16_t interpreter_threads = 0;

  friend bool operator==(const CpythonThreadLists&,
                         const CpythonThreadLists&) = default;
};

// An ELF file that holds a CPython interpreter: a program or a library.
struct CpythonInterpreter {
  CpythonVersion version;  // up to 3.10 without the micro release
  CpythonLayout layout;
  // Where the running thread's state is: first that of the thread that runs
  // Python's code, which one that waits does not have; then the one that the
  // thread began with, which need not be of the interpreter that it runs now.
  std::array<CpythonThreadPlace, 2> threads;
  // Nothing: not known, and threads have the two states above.
  std::optional<CpythonThreadLists> lists;
  ElfAddress runtime;  // _PyRuntime, and its size
  uint32_t runtime_bytes = 0;
  ElfAddress code_type;  // PyCode_Type
  // PyFrame_Type and what tells where frames belong, of Runs::kEach.
  std::optional<ElfAddress> frame_type;
  CpythonFrameWord frame_word;
};

// Looks for `_PyRuntime` among the file's dynamic symbols, whatever the file's
// name. Nothing if it has none, which takes two reads of a few bytes for most
// files. kUnsupported, with the reason: a version or a build that is not known.
// kCorrupt: the file lies.
Result<std::optional<CpythonInterpreter>> FindCpython(const ByteSource& source,
                                                      const ElfImage& image);

}  // namespace ksym
