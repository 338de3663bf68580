// SPDX-License-Identifier: Apache-2.0
// Any bytes as a section of call-frame information, or as a whole file. The
// first byte says which: 0 .eh_frame, 1 .debug_frame, else a file. The corpus
// holds sections of tests/ksym/unwind/call_frames_test.cc, and small libraries:
// "int g(void); int f(void) { return g() + 1; }" by gcc -O1 -fPIC -shared
// -nostdlib -Wl,-z,noseparate-code,-s, with and without section headers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "ksym/unwind/function_ranges.h"
#include "ksym/unwind/unwind_table_file.h"
#include "tests/ksym/elf/elf_builder.h"
#include "tests/ksym/unwind/table_of.h"

namespace {

std::string FileOf(uint8_t kind, std::string bytes) {
  if (kind > 1) return bytes;
  ksym::TestElf elf;
  elf.text_address = 0x1000;
  elf.text_offset = 0x200;
  elf.text_size = 0x1000;
  elf.extra_name = kind == 0 ? ".eh_frame" : ".debug_frame";
  elf.extra_bytes = std::move(bytes);
  return ksym::ElfBuilder<ksym::Elf64Types>::Build(elf);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text = FileOf(
      data[0], std::string(reinterpret_cast<const char*>(data + 1), size - 1));
  const auto functions =
      ksym::FunctionRanges::Load(ksym::ByteSource::OfMemory(text));
  for (uint64_t address = 0x1000; functions && address < 0x2000; ++address) {
    const auto start = functions->FindStart({address});
    if (start && start->value > address) std::abort();
  }
  const auto table = ksym::TableOf(ksym::ByteSource::OfMemory(text));
  if (!table) return 0;
  // Whoever reads a table checks that it is one.
  const std::string file = ksym::EncodeUnwindTable(*table, "id");
  if (!ksym::DecodeUnwindTable(std::as_bytes(std::span(file)), "id")) {
    std::abort();
  }
  return 0;
}
