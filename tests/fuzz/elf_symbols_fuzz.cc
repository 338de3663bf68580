// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ELF file: headers, symbols, stubs, the begin of programs,
// names. The corpus holds what ElfBuilder (tests/ksym/elf/elf_builder.h) writes
// for each class, with plain tables and with ones that zlib or zstd packed, the
// least that has the begin of a program, and a library with linkage stubs: "int
// a(void); int b(void); int f(void) { return a() + b(); }" by gcc -O1 -fPIC
// -shared -nostdlib -Wl,-z,noseparate-code,-s.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "ksym/demangle/demangle.h"
#include "ksym/elf/elf_symbols.h"
#include "ksym/elf/x86_64/start_code.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const ksym::ByteSource source = ksym::ByteSource::OfMemory(bytes);
  if (const auto image = ksym::ElfImage::Parse(source)) {
    (void)ksym::FindStartCode(source, *image);
  }
  const auto symbols =
      ksym::ElfSymbols::Load(ksym::ByteSource::OfMemory(bytes));
  if (!symbols) return 0;
  const uint64_t step = size / 512 + 1;
  for (uint64_t offset = 0; offset < size; offset += step) {
    const auto match = symbols->Find({offset});
    if (!match) continue;
    if (match->address < match->start) std::abort();
    const auto name = symbols->ReadName(*match);
    if (!name) continue;
    if (ksym::Demangle(*name).size() >
        name->size() + ksym::kMaxDemangledBytes) {
      std::abort();
    }
  }
  return 0;
}
