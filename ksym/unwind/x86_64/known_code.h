// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
#include "ksym/unwind/unwind_table.h"

namespace ksym {

// Adds rows for code that linkers and C libraries leave without call-frame
// information, and that is known by its bytes:
//
//   linkage stubs in .plt (those of lld and mold, and of static programs),
//   .plt.sec and .plt.got
//   the functions of .init and .fini, as crti.o begins and crtn.o ends them
//   the return from a signal handler (those of musl and Go)
//   what follows the system call in glibc's clone() and clone3()
//   where the function of glibc's makecontext() returns to
//
// And for other code in .text, but Go's, by what its instructions do
// (ksym/unwind/x86_64/undescribed_code.h). What cannot be read is left as it
// is. Cost: reads the code of .text that has no rows, of what has a clone() all
// of it, at most kMaxScannedBytes.
inline constexpr uint64_t kMaxScannedBytes = uint64_t{64} << 20;
void AddKnownCode(const ByteSource& source, const ElfImage& image,
                  UnwindTable& table);

}  // namespace ksym
