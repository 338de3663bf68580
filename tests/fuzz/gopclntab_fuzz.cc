// SPDX-License-Identifier: Apache-2.0
// Any bytes as the .gopclntab section of an otherwise correct file. The corpus
// is what tests/ksym/elf/make_gopclntab.py writes.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "ksym/elf/elf_symbols.h"
#include "tests/ksym/elf/elf_builder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ksym::TestElf elf;
  elf.text_offset = 0x200;
  elf.text_size = 0x100;
  elf.extra_name = ".gopclntab";
  elf.extra_bytes.assign(reinterpret_cast<const char*>(data), size);
  const auto symbols = ksym::ElfSymbols::Load(ksym::ByteSource::OfMemory(
      ksym::ElfBuilder<ksym::Elf64Types>::Build(elf)));
  if (!symbols) std::abort();
  for (uint64_t i = 0; i <= elf.text_size; ++i) {
    const auto match = symbols->Find({elf.text_offset + i});
    if (!match) continue;
    if (i == elf.text_size || match->address < match->start) std::abort();
    const auto name = symbols->ReadName(*match);
    if (name && name->size() > size) std::abort();
  }
  return 0;
}
