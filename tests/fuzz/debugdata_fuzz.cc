// SPDX-License-Identifier: Apache-2.0
// Any bytes as the .gnu_debugdata section of an otherwise correct file. With an
// odd first byte the rest is the section itself, with an even one it is what
// the section unpacks to, as a fuzzer does not guess checksums. The corpus
// holds a file by ElfBuilder (tests/ksym/elf/elf_builder.h) in both ways.

#include <lzma.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "ksym/elf/elf_symbols.h"
#include "tests/ksym/elf/elf_builder.h"

namespace {

std::string Pack(const uint8_t* data, size_t size) {
  std::string packed(::lzma_stream_buffer_bound(size), '\0');
  size_t used = 0;
  if (::lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, nullptr, data, size,
                                reinterpret_cast<uint8_t*>(packed.data()),
                                &used, packed.size()) != LZMA_OK) {
    std::abort();
  }
  packed.resize(used);
  return packed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  ksym::TestElf elf;
  elf.text_offset = 0x200;
  elf.text_size = 0x100;
  elf.extra_name = ".gnu_debugdata";
  if (data[0] % 2 != 0) {
    elf.extra_bytes.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  } else {
    elf.extra_bytes = Pack(data + 1, size - 1);
  }
  const auto symbols = ksym::ElfSymbols::Load(ksym::ByteSource::OfMemory(
      ksym::ElfBuilder<ksym::Elf64Types>::Build(elf)));
  if (!symbols) std::abort();
  for (uint64_t i = 0; i < elf.text_size; ++i) {
    const auto match = symbols->Find({elf.text_offset + i});
    if (!match) continue;
    if (match->address < match->start) std::abort();
    static_cast<void>(symbols->ReadName(*match));
  }
  return 0;
}
