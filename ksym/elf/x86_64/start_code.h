// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ksym/base/address.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace ksym {

// Two functions of a program that need no symbols to be known.
struct StartCode {
  ElfAddress start;  // _start, where the kernel or the dynamic linker jumps to
  ElfAddress main;
};

// glibc's crt1.o of x86-64, which is a part of each program that links with it,
// is known by its bytes: its _start is the file's entry point and passes main()
// to __libc_start_main(). Nothing for other programs, and where main() is in
// another file. Reads the file's header and 64 bytes.
std::optional<StartCode> FindStartCode(const ByteSource& source,
                                       const ElfImage& image);

}  // namespace ksym
