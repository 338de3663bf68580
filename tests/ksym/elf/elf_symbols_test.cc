// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/elf_symbols.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/text.h"
#include "ksym/process/process_image.h"
#include "tests/ksym/elf/elf_builder.h"

namespace ksym {
namespace {

Result<ElfSymbols> LoadFile(const std::string& path) {
  auto fd = OpenForRead(path);
  if (!fd) return Fail(fd.error());
  struct stat status = {};
  if (::fstat(fd->get(), &status) != 0) return FailErrno(errno, path);
  return ElfSymbols::Load(ByteSource::OfFile(
      std::move(*fd), static_cast<uint64_t>(status.st_size)));
}

// A library loaded into this process, so that the dynamic linker says where
// everything is.
class FixtureTest : public testing::TestWithParam<std::string> {
 protected:
  FixtureTest() : library_(::dlopen(GetParam().c_str(), RTLD_NOW)) {
    EXPECT_NE(library_, nullptr) << ::dlerror();
    auto mappings = ReadMaps(static_cast<uint32_t>(::getpid()));
    if (mappings) image_.mappings = std::move(*mappings);
    auto symbols = LoadFile(GetParam());
    EXPECT_TRUE(symbols) << symbols.error().message();
    if (symbols) symbols_.emplace(std::move(*symbols));
  }
  ~FixtureTest() override { ::dlclose(library_); }

  bool IsStripped() const {
    return GetParam().find("stripped") != std::string::npos;
  }

  std::string NameAt(const void* address, uint64_t distance = 0) {
    const Address at{reinterpret_cast<uint64_t>(address) + distance};
    const Mapping* mapping = image_.Find(at);
    if (mapping == nullptr || !symbols_) return "unmapped";
    const auto match =
        symbols_->Find(mapping->file_offset + (at - mapping->start));
    return match ? symbols_->ReadName(*match).value_or("unreadable") : "";
  }

  const void* Symbol(const char* name) { return ::dlsym(library_, name); }
  // What fixture_address() in fixture.c gives.
  enum Which { kOuter, kInner, kNotype, kUnsized, kStatic, kChoose };
  const void* Hidden(Which which) {
    using Function = const void*(int);
    return reinterpret_cast<Function*>(::dlsym(library_, "fixture_address"))(
        which);
  }

  void* library_;
  ProcessImage image_;
  std::optional<ElfSymbols> symbols_;
};

std::vector<std::string> FixturePaths() {
  std::vector<std::string> paths;
  std::string_view text = KSYM_ELF_FIXTURES;
  while (!text.empty()) paths.emplace_back(TakeField(text, ','));
  return paths;
}

INSTANTIATE_TEST_SUITE_P(
    Linked, FixtureTest, testing::ValuesIn(FixturePaths()),
    [](const auto& param) {
      return std::filesystem::path(param.param).stem().string();
    });

// Public functions are named wherever the linker put them.
TEST_P(FixtureTest, NamesPublicFunctions) {
  EXPECT_EQ(NameAt(Symbol("fixture_global")), "fixture_global");
  EXPECT_EQ(NameAt(Symbol("fixture_calls_out"), 3), "fixture_calls_out");
  EXPECT_EQ(symbols_->build_id(), "00112233445566778899aabbccddeeff");
}

// The name without underscores is shown of two for the same bytes.
TEST_P(FixtureTest, PrefersThePlainAlias) {
  ASSERT_EQ(Symbol("fixture_alias"), Symbol("__fixture_alias"));
  EXPECT_EQ(NameAt(Symbol("fixture_alias")), "fixture_alias");
}

// An indirect function's symbol names its resolver.
TEST_P(FixtureTest, NamesIndirectFunctions) {
  EXPECT_EQ(NameAt(Hidden(kChoose)), "fixture_ifunc");
}

// Functions that only the full table has are named as long as it is there.
TEST_P(FixtureTest, NamesPrivateFunctions) {
  EXPECT_EQ(NameAt(Hidden(kStatic)), IsStripped() ? "" : "fixture_static");
}

// An outer symbol goes on behind an inner one, and names that stand for no
// function are passed over.
TEST_P(FixtureTest, NamesNestedFunctions) {
  if (IsStripped()) return;
  const void* outer = Hidden(kOuter);
  EXPECT_EQ(NameAt(outer), "fixture_outer");
  EXPECT_EQ(NameAt(outer, 4), "fixture_outer");
  EXPECT_EQ(NameAt(outer, 15), "fixture_outer");
  EXPECT_EQ(NameAt(outer, 16), "fixture_inner");
  EXPECT_EQ(NameAt(outer, 23), "fixture_inner");
  EXPECT_EQ(NameAt(outer, 24), "fixture_outer");
  EXPECT_EQ(NameAt(outer, 31), "fixture_outer");
  EXPECT_EQ(NameAt(outer, 32), "");
}

// A symbol without a type counts if it has a size; one without a size ends at
// the next symbol.
TEST_P(FixtureTest, NamesUntypedAndUnsizedCode) {
  if (IsStripped()) return;
  EXPECT_EQ(NameAt(Hidden(kNotype), 15), "fixture_notype");
  EXPECT_EQ(NameAt(Hidden(kUnsized)), "fixture_unsized");
  EXPECT_EQ(NameAt(Hidden(kUnsized), 7), "fixture_unsized");
}

// Every stub is named for the function it leads to: calling it shows which.
TEST_P(FixtureTest, NamesPltStubs) {
#ifdef __x86_64__
  std::map<std::string, void*> stubs;
  for (const Mapping& mapping : image_.mappings) {
    if (mapping.path != std::filesystem::canonical(GetParam()).string()) {
      continue;
    }
    for (uint64_t at = mapping.start.value; at < mapping.end.value; ++at) {
      void* address = reinterpret_cast<void*>(at);
      const std::string name = NameAt(address);
      if (name.ends_with("@plt")) stubs.try_emplace(name, address);
    }
  }
  ASSERT_TRUE(stubs.contains("getppid@plt"));
  ASSERT_TRUE(stubs.contains("getpid@plt"));
  using Function = pid_t();
  EXPECT_EQ(reinterpret_cast<Function*>(stubs["getppid@plt"])(), ::getppid());
  EXPECT_EQ(reinterpret_cast<Function*>(stubs["getpid@plt"])(), ::getpid());
#else
  GTEST_SKIP() << "stubs are named on x86-64 only";
#endif
}

// A name that has no end within its string table is what there is of it; one
// outside it is no name.
TEST(ElfSymbolsTest, BoundsNames) {
  TestElf elf;
  elf.symbols = {{"first", 0x401000, 8}, {"last", 0x401008, 8}};
  std::string bytes = ElfBuilder<Elf64Types>::Build(elf);
  const size_t strtab = bytes.size() - (ElfBuilder<Elf64Types>::kSections - 4) *
                                           sizeof(Elf64_Shdr);
  Elf64_Shdr section;
  std::memcpy(&section, bytes.data() + strtab, sizeof(section));
  ASSERT_EQ(section.sh_type, uint32_t{SHT_STRTAB});
  const auto names = [&bytes, strtab](Elf64_Shdr header, uint64_t size) {
    header.sh_size = size;
    std::memcpy(bytes.data() + strtab, &header, sizeof(header));
    const auto symbols = ElfSymbols::Load(ByteSource::OfMemory(bytes));
    std::string text;
    for (const uint64_t offset : {0x1000, 0x1008}) {
      const auto match = symbols->Find({offset});
      text += match ? symbols->ReadName(*match).value_or("?") : "-";
      text += ' ';
    }
    return text;
  };
  EXPECT_EQ(names(section, 12), "first last ");
  EXPECT_EQ(names(section, 11), "first last ");
  EXPECT_EQ(names(section, 9), "first la ");
  EXPECT_EQ(names(section, 7), "first - ");
  EXPECT_EQ(names(section, 3), "fi - ");
}

// Names that stand for no function are left out wherever they lie in a string
// table that is read in several blocks.
TEST(ElfSymbolsTest, IgnoresLocalsInLargeStringTables) {
  TestElf elf;
  elf.text_size = 0x10000;
  size_t functions = 0;
  for (uint64_t i = 0; i < 4096; ++i) {
    TestSymbol symbol = {"", 0x401000 + i * 16, 16, STT_FUNC, STB_LOCAL};
    const std::string tail(i % 61, 'x');
    if (i % 4 == 0) {
      symbol.name = ".L" + tail;
    } else if (i % 4 == 1) {
      symbol.name = i % 8 == 1 ? "$x" : "$d." + tail;
    } else {
      symbol.name = (i % 4 == 2 ? "$" : "f") + tail + std::to_string(i);
      ++functions;
    }
    elf.symbols.push_back(symbol);
  }
  const auto symbols = ElfSymbols::Load(
      ByteSource::OfMemory(ElfBuilder<Elf64Types>::Build(elf)));
  ASSERT_TRUE(symbols);
  EXPECT_EQ(symbols->symbol_count(), functions);
  for (uint64_t i = 0; i < 4096; ++i) {
    EXPECT_EQ(symbols->Find({0x1000 + i * 16}).has_value(), i % 4 >= 2) << i;
  }
}

// A very long name is cut at the bound.
TEST(ElfSymbolsTest, CutsVeryLongNames) {
  TestElf elf;
  elf.symbols = {{std::string(3 * ElfSymbols::kMaxNameBytes, 'x'), 0x401000, 8},
                 {"other", 0x401008, 8}};
  const auto symbols = ElfSymbols::Load(
      ByteSource::OfMemory(ElfBuilder<Elf64Types>::Build(elf)));
  ASSERT_TRUE(symbols);
  const auto name = symbols->ReadName(*symbols->Find({0x1000}));
  ASSERT_TRUE(name);
  EXPECT_EQ(name->size(), ElfSymbols::kMaxNameBytes);
  EXPECT_EQ(symbols->ReadName(*symbols->Find({0x1008})).value(), "other");
}

// A file that shrinks after it was read costs its own names and nothing else.
TEST(ElfSymbolsTest, SurvivesTruncationAfterLoading) {
  TestElf elf;
  elf.symbols = {{"name", 0x401000, 8}};
  std::string path = testing::TempDir() + "ksym_elf_XXXXXX";
  const UniqueFd created(::mkstemp(path.data()));
  ASSERT_TRUE(WriteAll(created.get(), ElfBuilder<Elf64Types>::Build(elf)));
  const auto symbols = LoadFile(path);
  ASSERT_TRUE(symbols);
  ASSERT_EQ(::ftruncate(created.get(), 100), 0);
  const auto match = symbols->Find({0x1000});
  ASSERT_TRUE(match);
  EXPECT_FALSE(symbols->ReadName(*match));
  std::filesystem::remove(path);
}

// A label of hand-written code is used where no function is; one of .dynsym is
// not, because what lies behind it may have been stripped off.
TEST(ElfSymbolsTest, NamesLabelsOfTheFullTable) {
  TestElf elf;
  elf.symbols = {{"_start", 0x401000, 0, STT_NOTYPE},
                 {"main", 0x401100, 0x20},
                 {"main_loop", 0x401110, 0, STT_NOTYPE, STB_LOCAL}};
  elf.dynamic_symbols = {{"exported", 0x401200, 0, STT_NOTYPE}};
  const auto symbols = ElfSymbols::Load(
      ByteSource::OfMemory(ElfBuilder<Elf64Types>::Build(elf)));
  ASSERT_TRUE(symbols);
  const auto name = [&](uint64_t offset) {
    const auto match = symbols->Find({offset});
    return match ? symbols->ReadName(*match).value_or("?") : "-";
  };
  EXPECT_EQ(name(0x1000), "_start");
  EXPECT_EQ(name(0x10ff), "_start");
  EXPECT_EQ(name(0x1110), "main");
  EXPECT_EQ(name(0x1120), "-");
  EXPECT_EQ(name(0x1200), "-");
}

// Symbols outside executable sections, undefined or absolute, are no code.
TEST(ElfSymbolsTest, TakesCodeOnly) {
  TestElf elf;
  elf.symbols = {{"undefined", 0x401000, 8, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
                 {"absolute", 0x401008, 8, STT_FUNC, STB_GLOBAL, SHN_ABS},
                 {"object", 0x401010, 8, STT_OBJECT},
                 {".annobin_a.c", 0x401018, 0, STT_NOTYPE, STB_LOCAL},
                 {"before", 0x400fff, 8},
                 {"behind", 0x402000, 8},
                 {"last", 0x401fff, 8}};
  const auto symbols = ElfSymbols::Load(
      ByteSource::OfMemory(ElfBuilder<Elf64Types>::Build(elf)));
  ASSERT_TRUE(symbols);
  EXPECT_EQ(symbols->symbol_count(), 1u);
  const auto match = symbols->Find({0x1fff});
  ASSERT_TRUE(match);
  EXPECT_EQ(symbols->ReadName(*match).value(), "last");
  EXPECT_FALSE(symbols->Find({0x2000}));
}

// What is in a section without code is no code, whatever its address looks
// like: link-time optimization leaves labels in .debug_info, which begins at 0.
TEST(ElfSymbolsTest, TakesSymbolsOfCodeSectionsOnly) {
  constexpr uint16_t kNoCode = 2;       // .note.gnu.build-id
  constexpr uint16_t kNoSection = 100;  // there are nine
  TestElf elf;
  elf.symbols = {{"as.c.8968e5f9", 0x401020, 0, STT_NOTYPE, STB_WEAK, kNoCode},
                 {"sized", 0x401040, 8, STT_NOTYPE, STB_GLOBAL, kNoCode},
                 {"function", 0x401060, 8, STT_FUNC, STB_GLOBAL, kNoCode},
                 {"nowhere", 0x401080, 8, STT_FUNC, STB_GLOBAL, kNoSection},
                 {"extended", 0x4010a0, 8, STT_FUNC, STB_GLOBAL, SHN_XINDEX},
                 {"label", 0x4010c0, 0, STT_NOTYPE, STB_LOCAL}};
  const auto symbols = ElfSymbols::Load(
      ByteSource::OfMemory(ElfBuilder<Elf64Types>::Build(elf)));
  ASSERT_TRUE(symbols);
  const auto name = [&](uint64_t offset) {
    const auto match = symbols->Find({offset});
    return match ? symbols->ReadName(*match).value_or("?") : "-";
  };
  for (const uint64_t offset : {0x1020, 0x1040, 0x1060, 0x1080}) {
    EXPECT_EQ(name(offset), "-") << offset;
  }
  // Its section's number is elsewhere, and its address says enough.
  EXPECT_EQ(name(0x10a0), "extended");
  EXPECT_EQ(name(0x10c0), "label");
}

// One function has one name whether its file has a full symbol table or only
// the dynamic one, which keeps versions apart and has no local symbols.
TEST(ElfSymbolsTest, NamesDoNotDependOnTheTable) {
  const std::vector<TestSymbol> exported = {{"__isnanf128", 0x401000, 8},
                                            {"memmove", 0x401010, 8},
                                            {"memcpy", 0x401010, 8},
                                            {"__libc_start_main", 0x401020, 8}};
  TestElf bare;
  bare.dynamic_symbols = exported;
  TestElf full;
  full.symbols = {{"isnanf128_do_not_use", 0x401000, 8, STT_FUNC, STB_LOCAL},
                  {"__isnanf128", 0x401000, 8},
                  {"memmove@@GLIBC_2.2.5", 0x401010, 8},
                  {"memcpy@GLIBC_2.2.5", 0x401010, 8},
                  {"__libc_start_main@GLIBC_2.2.5", 0x401020, 8},
                  {"__libc_start_main@@GLIBC_2.34", 0x401020, 8}};
  const auto name = [](const TestElf& elf, uint64_t offset) {
    const auto symbols = ElfSymbols::Load(
        ByteSource::OfMemory(ElfBuilder<Elf64Types>::Build(elf)));
    const auto match = symbols->Find({offset});
    return match ? symbols->ReadName(*match).value_or("?") : "-";
  };
  for (const uint64_t offset : {0x1000, 0x1010, 0x1020}) {
    EXPECT_EQ(WithoutVersion(name(full, offset)), name(bare, offset));
  }
  EXPECT_EQ(name(full, 0x1000), "__isnanf128");
  EXPECT_EQ(name(full, 0x1010), "memcpy@GLIBC_2.2.5");
  // The version that new programs are linked with.
  EXPECT_EQ(name(full, 0x1020), "__libc_start_main@@GLIBC_2.34");
}

}  // namespace
}  // namespace ksym
