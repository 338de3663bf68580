// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ksym/base/address.h"

namespace profd {

// Whether it is code that the CPU enters by itself, on an interrupt or a fault:
// what is below it on the stack has not called it but was interrupted, so its
// address is the one of its next instruction and not that behind a call.
bool IsInterruptEntry(std::string_view symbol);

// "[libfoo.so]" for "/usr/lib/libfoo.so"; "[vdso]" stays.
std::string InBrackets(std::string_view path);

// "libfoo.so+0x1a2b30": a function without a symbol, so that each is one thing.
std::string FunctionAt(std::string_view path, ksym::ElfAddress start);

// The kernel calls a program bpf_prog_TAG_NAME, the tag being 16 hexadecimal
// digits of a hash of its instructions (bpf_get_prog_name() in
// kernel/bpf/core.c).
struct BpfProgramName {
  std::string name;  // bpf_prog_NAME
  std::string_view tag;
};

// Nothing: it is no program's.
std::optional<BpfProgramName> SplitBpfProgramName(std::string_view symbol);

}  // namespace profd
