// SPDX-License-Identifier: Apache-2.0
// Every field of every header of valid files, set to what a broken or hostile
// file could have there.

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/text.h"
#include "ksym/elf/elf_symbols.h"
#include "tests/ksym/elf/elf_builder.h"

namespace ksym {
namespace {

// One field of a file.
struct Field {
  size_t offset = 0;
  size_t width = 0;
};

struct Layout {
  std::vector<size_t> file_header;
  std::vector<size_t> segment;
  std::vector<size_t> section;
  std::vector<size_t> symbol;
  std::vector<size_t> compression;
};

// The widths of the fields in their order: System V ABI, chapters 4 and 5.
Layout LayoutOf(bool is64) {
  std::vector<size_t> ident(EI_NIDENT, 1);
  const size_t wide = is64 ? 8 : 4;
  Layout layout;
  layout.file_header = ident;
  for (const size_t width :
       {size_t{2}, size_t{2}, size_t{4}, wide, wide, wide, size_t{4}, size_t{2},
        size_t{2}, size_t{2}, size_t{2}, size_t{2}, size_t{2}}) {
    layout.file_header.push_back(width);
  }
  if (is64) {
    layout.segment = {4, 4, 8, 8, 8, 8, 8, 8};
    layout.section = {4, 4, 8, 8, 8, 8, 4, 4, 8, 8};
    layout.symbol = {4, 1, 1, 2, 8, 8};
    layout.compression = {4, 4, 8, 8};
  } else {
    layout.segment = std::vector<size_t>(8, 4);
    layout.section = std::vector<size_t>(10, 4);
    layout.symbol = {4, 4, 4, 1, 1, 2};
    layout.compression = {4, 4, 4};
  }
  return layout;
}

uint64_t Get(const std::string& bytes, Field field) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + field.offset, field.width);
  return value;
}

void Set(std::string& bytes, Field field, uint64_t value) {
  std::memcpy(bytes.data() + field.offset, &value, field.width);
}

// Appends the fields of `count` records from `offset` on.
void AddRecords(const std::vector<size_t>& widths, uint64_t offset,
                uint64_t count, std::vector<Field>& fields) {
  for (uint64_t i = 0; i < count; ++i) {
    for (const size_t width : widths) {
      fields.push_back({offset, width});
      offset += width;
    }
  }
}

template <typename T>
std::vector<Field> FieldsOf(const std::string& bytes) {
  const Layout layout = LayoutOf(T::kClass == ELFCLASS64);
  typename T::Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::vector<Field> fields;
  AddRecords(layout.file_header, 0, 1, fields);
  AddRecords(layout.segment, header.e_phoff, header.e_phnum, fields);
  AddRecords(layout.section, header.e_shoff, header.e_shnum, fields);
  for (size_t i = 0; i < header.e_shnum; ++i) {
    typename T::Shdr section;
    std::memcpy(&section, bytes.data() + header.e_shoff + i * sizeof(section),
                sizeof(section));
    if ((section.sh_flags & SHF_COMPRESSED) != 0) {
      AddRecords(layout.compression, section.sh_offset, 1, fields);
    } else if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM) {
      const uint64_t count = section.sh_size / sizeof(typename T::Sym);
      AddRecords(layout.symbol, section.sh_offset, std::min<uint64_t>(count, 8),
                 fields);
    }
  }
  return fields;
}

std::set<uint64_t> ValuesFor(uint64_t value, size_t width, uint64_t file_size) {
  const uint64_t max =
      width == 8 ? ~uint64_t{0} : (uint64_t{1} << width * 8) - 1;
  const uint64_t top = max / 2 + 1;
  std::set<uint64_t> values;
  for (const uint64_t v :
       {uint64_t{0}, uint64_t{1}, max, max - 1, top, top - 1, value - 1,
        value + 1, value / 2, value ^ top, file_size, file_size - 1}) {
    values.insert(v & max);
  }
  values.erase(value);
  return values;
}

// Whether all bytes of `name` are a text of the file, or of the part of it that
// was packed.
bool IsTextOf(std::string name, const std::string& bytes,
              const std::string& unpacked) {
  if (name.ends_with("@plt")) name.resize(name.size() - 4);
  return bytes.find(name) != std::string::npos ||
         unpacked.find(name) != std::string::npos;
}

// Loads the file and asks for everything in it.
void LoadAndAsk(const std::string& bytes, const std::string& unpacked) {
  const auto symbols = ElfSymbols::Load(ByteSource::OfMemory(bytes));
  if (!symbols) {
    const ErrorCode code = symbols.error().code();
    EXPECT_TRUE(code == ErrorCode::kCorrupt || code == ErrorCode::kLimit ||
                code == ErrorCode::kUnsupported)
        << symbols.error().message();
    return;
  }
  ASSERT_LE(symbols->memory_bytes(), 64 * bytes.size() + (size_t{1} << 20));
  const size_t step = std::max<size_t>(bytes.size() / 128, 1);
  for (uint64_t offset = 0; offset < bytes.size(); offset += step) {
    const auto match = symbols->Find({offset});
    if (!match) continue;
    ASSERT_LE(match->start, match->address);
    const auto name = symbols->ReadName(*match);
    if (!name) continue;
    ASSERT_TRUE(IsTextOf(*name, bytes, unpacked)) << *name;
  }
}

template <typename T>
void CorruptEachField(const std::string& good, const std::string& unpacked) {
  for (const Field field : FieldsOf<T>(good)) {
    const uint64_t value = Get(good, field);
    for (const uint64_t bad : ValuesFor(value, field.width, good.size())) {
      std::string bytes = good;
      Set(bytes, field, bad);
      SCOPED_TRACE(testing::Message() << "offset " << field.offset << ", "
                                      << value << " -> " << bad);
      LoadAndAsk(bytes, unpacked);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TestElf Example(uint32_t compression) {
  TestElf elf;
  elf.text_address = 0x401000;
  elf.text_offset = 0x200;
  elf.text_size = 0x100;
  elf.symbols = {{"outer_function", 0x401000, 0x40},
                 {"inner_function", 0x401010, 0x10},
                 {"unsized_function", 0x401040, 0},
                 {"a_label", 0x401060, 0, STT_NOTYPE},
                 {"indirect_function", 0x401080, 0x10, STT_GNU_IFUNC},
                 {"last_function", 0x4010f0, 0x10}};
  elf.dynamic_symbols = {{"outer_function", 0x401000, 0x40}};
  elf.compression = compression;
  elf.extra_name = ".gnu_debuglink";
  elf.extra_bytes = std::string("file.debug\0\0\x01\x02\x03\x04", 16);
  return elf;
}

class CorruptHeadersTest : public testing::TestWithParam<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Formats, CorruptHeadersTest,
                         testing::Values(0, ELFCOMPRESS_ZLIB, kTestZstd));

// A 64-bit file with any one wrong field gives no crash, no endless loop, and
// no name that is not a text of the file.
TEST_P(CorruptHeadersTest, Class64) {
  const std::string plain = ElfBuilder<Elf64Types>::Build(Example(0));
  CorruptEachField<Elf64Types>(
      ElfBuilder<Elf64Types>::Build(Example(GetParam())), plain);
}

// So does a 32-bit file.
TEST_P(CorruptHeadersTest, Class32) {
  const std::string plain = ElfBuilder<Elf32Types>::Build(Example(0));
  CorruptEachField<Elf32Types>(
      ElfBuilder<Elf32Types>::Build(Example(GetParam())), plain);
}

// So does a library as the linker writes it, with linkage stubs.
TEST(CorruptHeadersOfLibraryTest, Class64) {
  std::string_view paths = KSYM_ELF_FIXTURES;
  std::ifstream in(std::string(TakeField(paths, ',')), std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  ASSERT_TRUE(good.starts_with(ELFMAG));
  CorruptEachField<Elf64Types>(good, {});
}

}  // namespace
}  // namespace ksym
