// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
#include "ksym/runtime/v8/layout.h"

namespace ksym {

// Looks for V8 in a file, whatever its name: for what it tells debuggers among
// its dynamic symbols, `v8dbg_*`. These say which version it is, and have to
// agree with what is known of that one. Null if the file has none, which takes
// two reads of a few bytes for most files. kUnsupported, with the reason: a
// version or a build that is not known. kCorrupt: the file lies.
Result<const V8Layout*> FindV8(const ByteSource& source, const ElfImage& image);

}  // namespace ksym
