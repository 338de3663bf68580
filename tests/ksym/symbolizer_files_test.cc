// SPDX-License-Identifier: Apache-2.0
// What the symbolizer makes of files: reasons, debug files and bounds.
#include <dlfcn.h>
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/base/bounded_name.h"
#include "ksym/base/warning_list.h"
#include "ksym/symbolizer.h"
#include "tests/ksym/elf/elf_builder.h"
#include "tests/ksym/own_process.h"
#include "tests/ksym/unwind/cfi_builder.h"

namespace ksym {
namespace {

constexpr auto kOfHost = SymbolizerOptions::Files::kOfHost;

// Files made for a test, mapped nowhere: their images are written by hand.
class SymbolizerFileTest : public testing::Test {
 protected:
  SymbolizerFileTest() {
    std::string name = testing::TempDir() + "ksym_symbolizer_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = std::filesystem::canonical(name);
  }
  ~SymbolizerFileTest() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ / name; }

  void Write(const std::string& name, std::string_view bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
  }

  void WriteElf(const std::string& name,
                std::vector<TestSymbol> symbols) const {
    TestElf elf;
    elf.symbols = std::move(symbols);
    Write(name, ElfBuilder<Elf64Types>::Build(elf));
  }

  // An image that maps the file's text at 0x10000 * (1 + index).
  void Map(const std::string& name) {
    struct stat status = {};
    ASSERT_EQ(::stat(Path(name).c_str(), &status), 0);
    Mapping mapping;
    mapping.start = {0x10000 * (1 + image_.mappings.size())};
    mapping.end = mapping.start + 0x1000;
    mapping.file_offset = {0x1000};
    mapping.device_major = major(status.st_dev);
    mapping.device_minor = minor(status.st_dev);
    mapping.inode = status.st_ino;
    mapping.path = Path(name);
    image_.mappings.push_back(mapping);
  }

  void MapMemory(uint64_t start, const char* name) {
    Mapping mapping;
    mapping.start = {start};
    mapping.end = {start + 0x1000};
    mapping.path = name;
    image_.mappings.push_back(mapping);
  }

  UserSymbol Resolve(Symbolizer& symbolizer, uint64_t address) const {
    return symbolizer.Resolve(image_, {address});
  }

  std::filesystem::path directory_;
  ProcessImage image_;
};

// Each way to have no name has its own reason.
TEST_F(SymbolizerFileTest, GivesTheReason) {
  WriteElf("full", {{"name", 0x401000, 0x10}});
  WriteElf("stripped", {});
  Write("text", "#!/bin/sh\n");
  Write("gone", "x");
  WriteElf("changed", {{"name", 0x401000, 0x10}});
  for (const char* name : {"full", "stripped", "text", "gone", "changed"}) {
    Map(name);
  }
  MapMemory(0x60000, "");
  MapMemory(0x70000, "[vsyscall]");
  std::filesystem::remove(Path("gone"));
  std::filesystem::rename(Path("changed"), Path("kept"));
  WriteElf("changed", {{"other", 0x401000, 0x10}});
  Symbolizer symbolizer({.files = kOfHost});
  const auto reason = [&](uint64_t address) {
    return Resolve(symbolizer, address).reason;
  };
  EXPECT_EQ(reason(0x10000), Unresolved::kNone);
  EXPECT_EQ(reason(0x1000f), Unresolved::kNone);
  EXPECT_EQ(reason(0x10010), Unresolved::kNoSymbol);
  EXPECT_EQ(reason(0x20000), Unresolved::kNoSymbols);
  EXPECT_EQ(reason(0x30000), Unresolved::kMalformed);
  EXPECT_EQ(reason(0x40000), Unresolved::kGone);
  EXPECT_EQ(reason(0x50000), Unresolved::kFileChanged);
  EXPECT_EQ(reason(0x60000), Unresolved::kAnonymous);
  EXPECT_EQ(reason(0x70000), Unresolved::kNoSymbols);
  EXPECT_EQ(reason(0xffff), Unresolved::kUnmapped);
  EXPECT_EQ(symbolizer.Resolve({}, {0x10000}).reason, Unresolved::kNoProcess);
  EXPECT_EQ(Resolve(symbolizer, 0x10010).file_offset.value, 0x1010u);
  EXPECT_EQ(Resolve(symbolizer, 0x10010).build_id, "0102abcd");
  EXPECT_EQ(symbolizer.statistics().files_failed, 3u);
  EXPECT_EQ(symbolizer.statistics().files_loaded, 2u);
}

// A file that may not be read is told from one that is gone.
TEST_F(SymbolizerFileTest, SaysThatPermissionIsMissing) {
  WriteElf("secret", {{"name", 0x401000, 0x10}});
  Map("secret");
  std::filesystem::permissions(directory_, std::filesystem::perms::all);
  ASSERT_EQ(::chmod(Path("secret").c_str(), 0), 0);
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  Symbolizer symbolizer({.files = kOfHost});
  EXPECT_EQ(Resolve(symbolizer, 0x10000).reason, Unresolved::kNoPermission);
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
}

// Code without a symbol has where its function begins, if the file has
// call-frame information; what is counted for that goes with the file's table.
TEST_F(SymbolizerFileTest, FindsFunctionsWithoutSymbols) {
  CfiBuilder frames(CfiLayout::kEhFrame);
  const size_t common = frames.AddCie({});
  frames.AddFde(common, 0x401000, 0x20, {});
  frames.AddFde(common, 0x401020, 0x10, {});
  TestElf elf;
  elf.symbols = {{"name", 0x401000, 0x10}};
  elf.extra_name = ".eh_frame";
  elf.extra_bytes = frames.bytes();
  Write("file", ElfBuilder<Elf64Types>::Build(elf));
  Map("file");
  Symbolizer symbolizer({.files = kOfHost});
  const auto start = [&](uint64_t address) {
    const auto found = Resolve(symbolizer, address).function_start;
    return found ? found->value : 0;
  };
  EXPECT_EQ(start(0x10000), 0u);  // it has a name
  const uint64_t bytes = symbolizer.statistics().cache_bytes;
  EXPECT_EQ(start(0x10010), 0x401000u);
  EXPECT_EQ(start(0x1001f), 0x401000u);
  EXPECT_EQ(start(0x10020), 0x401020u);
  EXPECT_EQ(start(0x10030), 0u);
  EXPECT_EQ(Resolve(symbolizer, 0x10020).reason, Unresolved::kNoSymbol);
  EXPECT_GT(symbolizer.statistics().cache_bytes, bytes);
}

// main() and _start() have names without symbols, others have none.
TEST_F(SymbolizerFileTest, NamesTheBeginOfPrograms) {
  constexpr std::string_view kStart(
      "\x31\xed\x49\x89\xd1\x5e\x48\x89\xe2\x48\x83\xe4\xf0\x50\x54"
      "\x45\x31\xc0\x31\xc9\x48\x8d\x3d\x25\x00\x00\x00"
      "\xff\x15\x00\x02\x00\x00\xf4",
      34);
  CfiBuilder frames(CfiLayout::kEhFrame);
  const size_t common = frames.AddCie({});
  frames.AddFde(common, 0x401000, 0x22, {});
  frames.AddFde(common, 0x401030, 0x10, {});
  frames.AddFde(common, 0x401040, 0x10, {});
  TestElf elf;
  elf.extra_name = ".eh_frame";
  elf.extra_bytes = frames.bytes();
  std::string file = ElfBuilder<Elf64Types>::Build(elf);
  file.replace(elf.text_offset, kStart.size(), kStart);
  std::memcpy(file.data() + offsetof(Elf64_Ehdr, e_entry), &elf.text_address,
              sizeof(elf.text_address));
  Write("file", file);
  Map("file");
  Symbolizer symbolizer({.files = kOfHost});
  EXPECT_EQ(Resolve(symbolizer, 0x10021).name, "_start");
  const UserSymbol main = Resolve(symbolizer, 0x10043);
  EXPECT_EQ(main.name, "main");
  EXPECT_EQ(main.symbol_offset, 3u);
  EXPECT_EQ(main.reason, Unresolved::kNone);
  EXPECT_FALSE(main.function_start);
  const UserSymbol other = Resolve(symbolizer, 0x10033);
  EXPECT_EQ(other.name, "");
  EXPECT_EQ(other.reason, Unresolved::kNoSymbols);
  EXPECT_EQ(other.function_start->value, 0x401030u);
}

// A file written over in place keeps the names that are known; for a new one
// it would be wrong to look into what is there now.
TEST_F(SymbolizerFileTest, NoticesAFileWrittenOver) {
  WriteElf("file", {{"first", 0x401000, 0x10}, {"second", 0x401010, 0x10}});
  Map("file");
  Symbolizer symbolizer({.files = kOfHost});
  EXPECT_EQ(Resolve(symbolizer, 0x10000).name, "first");
  WriteElf("file", {{"other", 0x401000, 0x10}, {"longer_name", 0x401010, 1}});
  EXPECT_EQ(Resolve(symbolizer, 0x10000).name, "first");
  EXPECT_EQ(Resolve(symbolizer, 0x10010).reason, Unresolved::kFileChanged);
  // A process seen from now on runs the new contents.
  symbolizer.Pin(image_);
  EXPECT_EQ(Resolve(symbolizer, 0x10010).name, "longer_name");
}

// With one descriptor allowed, two files take turns, and all names stay valid.
TEST_F(SymbolizerFileTest, BoundsOpenFiles) {
  WriteElf("a", {{"name_a", 0x401000, 0x10}});
  WriteElf("b", {{"name_b", 0x401000, 0x10}});
  Map("a");
  Map("b");
  Symbolizer symbolizer({.files = kOfHost, .max_open_files = 1});
  symbolizer.Pin(image_);
  EXPECT_EQ(symbolizer.statistics().files_closed, 1u);
  EXPECT_EQ(symbolizer.statistics().files_known, 2u);
  EXPECT_EQ(symbolizer.statistics().files_loaded, 0u);
  const UserSymbol first = Resolve(symbolizer, 0x10000);
  const UserSymbol second = Resolve(symbolizer, 0x20000);
  EXPECT_EQ(first.name, "name_a");
  EXPECT_EQ(second.name, "name_b");
  EXPECT_EQ(Resolve(symbolizer, 0x10000).name.data(), first.name.data());
}

// With no memory for tables only the one in use is kept.
TEST_F(SymbolizerFileTest, BoundsTableBytes) {
  WriteElf("a", {{"name_a", 0x401000, 0x10}});
  WriteElf("b", {{"name_b", 0x401000, 0x10}});
  Map("a");
  Map("b");
  Symbolizer symbolizer({.files = kOfHost, .cache_bytes = 0});
  const UserSymbol first = Resolve(symbolizer, 0x10000);
  const uint64_t one_table = symbolizer.statistics().cache_bytes;
  EXPECT_EQ(Resolve(symbolizer, 0x20000).name, "name_b");
  EXPECT_EQ(symbolizer.statistics().cache_bytes, one_table);
  EXPECT_EQ(symbolizer.statistics().symbols, 1u);
  EXPECT_EQ(symbolizer.statistics().files_evicted, 1u);
  EXPECT_EQ(symbolizer.statistics().files_closed, 0u);
  EXPECT_EQ(Resolve(symbolizer, 0x10000).name, "name_a");
  EXPECT_EQ(first.name, "name_a");
}

// What had no name has one as soon as there is a source of debug files, which
// is asked once per stripped file and for no other.
TEST_F(SymbolizerFileTest, ResolvesAgainWithFetchedDebugFiles) {
  TestElf full;
  full.symbols = {{"fetched", 0x401010, 0x10}};
  full.build_id = "stripped";
  WriteElf("a", {{"own", 0x401000, 0x10}});
  TestElf stripped;
  stripped.build_id = full.build_id;
  stripped.dynamic_symbols = {{"dynamic", 0x401000, 0x10}};
  std::ofstream(Path("b")) << ElfBuilder<Elf64Types>::Build(stripped);
  Map("a");
  Map("b");
  Symbolizer symbolizer({.files = kOfHost});
  const UserSymbol own = Resolve(symbolizer, 0x10010);
  EXPECT_EQ(own.reason, Unresolved::kNoSymbol);
  EXPECT_EQ(Resolve(symbolizer, 0x20000).name, "dynamic");
  const UserSymbol before = Resolve(symbolizer, 0x20014);
  EXPECT_EQ(before.reason, Unresolved::kNoSymbol);
  const auto again = [&](const UserSymbol& symbol) {
    return symbolizer.ResolveAgain(symbol.build_id, symbol.file_offset);
  };
  EXPECT_EQ(again(before).reason, Unresolved::kNoSymbol);

  std::vector<std::string> asked;
  symbolizer.SetDebugFileSource(
      [&](const std::string& build_id) -> Result<ByteSource> {
        asked.push_back(build_id);
        return ByteSource::OfMemory(ElfBuilder<Elf64Types>::Build(full));
      });
  const UserSymbol after = again(before);
  EXPECT_EQ(after.name, "fetched");
  EXPECT_EQ(after.symbol_offset, 4u);
  EXPECT_EQ(again(before).name, "fetched");
  EXPECT_EQ(again(own).reason, Unresolved::kNoSymbol);
  EXPECT_THAT(asked, testing::ElementsAre(before.build_id));
  EXPECT_EQ(symbolizer.ResolveAgain("0123", {0}).reason, Unresolved::kGone);
}

// A source that gives another file's symbols names nothing.
TEST_F(SymbolizerFileTest, RefusesFetchedFilesOfAnotherBuildId) {
  WriteElf("a", {});
  Map("a");
  TestElf other;
  other.symbols = {{"wrong", 0x401000, 0x10}};
  other.build_id = "other";
  Symbolizer symbolizer({.files = kOfHost});
  symbolizer.SetDebugFileSource([&](const std::string&) -> Result<ByteSource> {
    return ByteSource::OfMemory(ElfBuilder<Elf64Types>::Build(other));
  });
  EXPECT_EQ(Resolve(symbolizer, 0x10000).reason, Unresolved::kNoSymbols);
}

// Two files may have one build-id: the one counts that nobody else could have
// written, whichever was seen first.
TEST_F(SymbolizerFileTest, BuildIdIsOfTheTrustedFile) {
  WriteElf("true", {{"true_name", 0x401000, 0x10}});
  WriteElf("claim", {{"false_name", 0x401000, 0x10}});
  ASSERT_EQ(::chmod(Path("claim").c_str(), 0666), 0);
  Map("true");
  Map("claim");
  for (const uint64_t first : {0x10000, 0x20000}) {
    Symbolizer symbolizer({.files = kOfHost});
    const UserSymbol one = Resolve(symbolizer, first);
    const UserSymbol other = Resolve(symbolizer, 0x30000 - first);
    EXPECT_NE(one.name, other.name);
    EXPECT_EQ(one.build_id, other.build_id);
    EXPECT_EQ(symbolizer.ResolveAgain(one.build_id, {0x1000}).name,
              "true_name");
  }
}

// A build-id that two users claim is nobody's, until a trusted file has it.
TEST_F(SymbolizerFileTest, DisputedBuildIdIsNobodys) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  WriteElf("a", {{"a", 0x401000, 0x10}});
  WriteElf("b", {{"b", 0x401000, 0x10}});
  WriteElf("c", {{"c", 0x401000, 0x10}});
  ASSERT_EQ(::chown(Path("a").c_str(), 1000, 1000), 0);
  ASSERT_EQ(::chown(Path("b").c_str(), 1001, 1001), 0);
  for (const char* name : {"a", "b", "c"}) Map(name);
  Symbolizer symbolizer({.files = kOfHost});
  const std::string id(Resolve(symbolizer, 0x10000).build_id);
  EXPECT_EQ(symbolizer.ResolveAgain(id, {0x1000}).name, "a");
  Resolve(symbolizer, 0x20000);
  EXPECT_EQ(symbolizer.ResolveAgain(id, {0x1000}).reason, Unresolved::kGone);
  const auto disputed = symbolizer.OpenAgain(id);
  ASSERT_FALSE(disputed);
  EXPECT_EQ(disputed.error().code(), ErrorCode::kPermission);
  Resolve(symbolizer, 0x30000);
  EXPECT_EQ(symbolizer.ResolveAgain(id, {0x1000}).name, "c");
}

// A version behind a name, which only a full symbol table has, is not shown:
// profiles of machines with and without debug files have one name.
TEST_F(SymbolizerFileTest, NamesHaveNoVersions) {
  WriteElf("a", {{"f@@V1", 0x401000, 0x10}, {"_ZN1a1bEv@V2", 0x401010, 0x10}});
  Map("a");
  Symbolizer demangling({.files = kOfHost});
  EXPECT_EQ(Resolve(demangling, 0x10000).name, "f");
  EXPECT_EQ(Resolve(demangling, 0x10010).name, "a::b()");
  Symbolizer plain(
      {.demangle = SymbolizerOptions::Demangle::kOff, .files = kOfHost});
  EXPECT_EQ(Resolve(plain, 0x10000).name, "f");
  EXPECT_EQ(Resolve(plain, 0x10010).name, "_ZN1a1bEv");
}

// When there is no room for a new name, the reason says so.
TEST_F(SymbolizerFileTest, BoundsNameBytes) {
  WriteElf("a", {{"name", 0x401000, 0x10},
                 {std::string(2000, 'x'), 0x401010, 0x10}});
  Map("a");
  Symbolizer symbolizer({.files = kOfHost, .max_name_bytes = 1000});
  EXPECT_EQ(Resolve(symbolizer, 0x10000).name, "name");
  EXPECT_EQ(Resolve(symbolizer, 0x10010).reason, Unresolved::kTooLarge);
}

// A symbol's name is cut where it is longer than names are shown, and two that
// differ only at their end stay two.
TEST_F(SymbolizerFileTest, CutsLongNames) {
  const std::string most(kMaxShownBytes, 'x');
  const std::string longer(60'000, 'x');
  WriteElf("a", {{most, 0x401000, 0x10},
                 {longer + "1", 0x401010, 0x10},
                 {longer + "2", 0x401020, 0x10}});
  Map("a");
  Symbolizer symbolizer({.files = kOfHost});
  EXPECT_EQ(Resolve(symbolizer, 0x10000).name, most);
  const UserSymbol first = Resolve(symbolizer, 0x10010);
  const UserSymbol second = Resolve(symbolizer, 0x10020);
  EXPECT_EQ(first.name.size(), kMaxShownBytes);
  EXPECT_EQ(second.name.size(), kMaxShownBytes);
  EXPECT_NE(first.name, second.name);
}

// A path is shown by its end where it is longer; the file is found by all of
// it.
TEST_F(SymbolizerFileTest, CutsLongPaths) {
  std::string directory;
  while (directory.size() < 3000) {
    directory += std::string(200, 'f') + "/";
    std::filesystem::create_directory(Path(directory));
  }
  WriteElf(directory + "lib.so", {{"name", 0x401000, 0x10}});
  Map(directory + "lib.so");
  Symbolizer symbolizer({.files = kOfHost});
  const UserSymbol symbol = Resolve(symbolizer, 0x10000);
  EXPECT_EQ(symbol.name, "name");
  EXPECT_LE(symbol.module.size(), kMaxShownBytes);
  EXPECT_TRUE(symbol.module.ends_with("f/lib.so")) << symbol.module;
}

// As many files as may be are looked at, and one more is not.
TEST_F(SymbolizerFileTest, BoundsFiles) {
  for (const char* name : {"a", "b", "c"}) {
    WriteElf(name, {{"name", 0x401000, 0x10}});
    Map(name);
  }
  Symbolizer symbolizer({.files = kOfHost, .max_files = 2});
  symbolizer.Pin(image_);
  EXPECT_EQ(Resolve(symbolizer, 0x10000).name, "name");
  EXPECT_EQ(Resolve(symbolizer, 0x20000).name, "name");
  EXPECT_EQ(Resolve(symbolizer, 0x30000).reason, Unresolved::kTooLarge);
  EXPECT_EQ(symbolizer.statistics().files_known, 2u);
  EXPECT_EQ(symbolizer.TakeWarnings().size(), 1u);
}

// Memory whose mappings there was no room for says so.
TEST_F(SymbolizerFileTest, TellsOfMappingsThatWereNotKept) {
  MapMemory(0x10000, "[too-large]");
  Symbolizer symbolizer({.files = kOfHost});
  const UserSymbol symbol = Resolve(symbolizer, 0x10000);
  EXPECT_EQ(symbol.reason, Unresolved::kTooLarge);
  EXPECT_EQ(symbol.module, "[too-large]");
}

// What is beyond a bound says so, once and with its owner.
TEST_F(SymbolizerFileTest, WarnsOfFilesBeyondABound) {
  WriteElf("good", {{"name", 0x401000, 0x10}});
  std::string bytes = ElfBuilder<Elf64Types>::Build({});
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.e_phnum = 0xffff;
  std::memcpy(bytes.data(), &header, sizeof(header));
  Map("good");
  for (size_t i = 0; i < WarningList::kMax + 5; ++i) {
    const std::string name = "large" + std::to_string(i);
    Write(name, bytes);
    Map(name);
  }
  Symbolizer symbolizer({.files = kOfHost});
  for (const Mapping& mapping : image_.mappings) {
    const UserSymbol symbol = Resolve(symbolizer, mapping.start.value);
    EXPECT_EQ(symbol.reason, mapping.start == Address{0x10000}
                                 ? Unresolved::kNone
                                 : Unresolved::kTooLarge);
  }
  Resolve(symbolizer, 0x20000);
  const auto warnings = symbolizer.TakeWarnings();
  ASSERT_EQ(warnings.size(), WarningList::kMax);
  EXPECT_EQ(warnings.front(), Path("large0") + " (of user " +
                                  std::to_string(::geteuid()) +
                                  ") not used: 65535 program headers");
  EXPECT_EQ(warnings.back(), "more files were not used, or not all of them");
  EXPECT_TRUE(symbolizer.TakeWarnings().empty());
}

// A library is named when its file was deleted, before or after it was pinned.
TEST_F(SymbolizerFileTest, NamesDeletedLibraries) {
  std::filesystem::copy(KSYM_ELF_FIXTURE, Path("lib.so"));
  void* library = ::dlopen(Path("lib.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const Address address = AddressOf(::dlsym(library, "fixture_global"));
  Symbolizer early({});
  early.Pin(OwnImage());
  std::filesystem::remove(Path("lib.so"));
  const ProcessImage image = OwnImage();
  EXPECT_EQ(early.Resolve(image, address).name, "fixture_global");
  Symbolizer late({});
  const UserSymbol symbol = late.Resolve(image, address);
  EXPECT_TRUE(symbol.name == "fixture_global" ||
              symbol.reason == Unresolved::kGone)
      << UnresolvedName(symbol.reason);
  if (::geteuid() == 0) {
    EXPECT_EQ(symbol.name, "fixture_global");
  }
  ::dlclose(library);
}

}  // namespace
}  // namespace ksym
