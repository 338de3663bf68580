// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
#include "ksym/runtime/cpython/layout.h"

namespace ksym {

// An ELF file that holds a CPython interpreter: a program or a library.
struct CpythonInterpreter {
  CpythonVersion version;
  CpythonLayout layout;
  ElfAddress key;        // where the pthread key of thread states is
  ElfAddress code_type;  // PyCode_Type
};

// Looks for `_PyRuntime` among the file's dynamic symbols, whatever the file's
// name. Nothing if it has none, which takes two reads of a few bytes for most
// files. kUnsupported, with the reason: a version that is not known, or built
// without the global lock. kCorrupt: the file lies.
Result<std::optional<CpythonInterpreter>> FindCpython(const ByteSource& source,
                                                      const ElfImage& image);

}  // namespace ksym
