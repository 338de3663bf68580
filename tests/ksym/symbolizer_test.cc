// SPDX-License-Identifier: Apache-2.0
#include "ksym/symbolizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

#include "tests/ksym/own_process.h"

namespace ksym {
namespace {

[[gnu::noinline]] int KnownFunction(int x) { return x * 3 + 1; }

Address KnownAddress() {
  return AddressOf(reinterpret_cast<const void*>(&KnownFunction));
}

// A function of this program is named, demangled, with module and offsets.
TEST(SymbolizerTest, NamesOwnFunction) {
  Symbolizer symbolizer({});
  const ProcessImage image = OwnImage();
  symbolizer.Pin(image);
  const Address address = KnownAddress();
  const UserSymbol symbol = symbolizer.Resolve(image, address + 3);
  EXPECT_EQ(symbol.name, "ksym::(anonymous namespace)::KnownFunction(int)");
  EXPECT_EQ(symbol.symbol_offset, 3u);
  EXPECT_EQ(symbol.reason, Unresolved::kNone);
  EXPECT_THAT(std::string(symbol.module), testing::EndsWith("symbolizer_test"));
  EXPECT_FALSE(symbol.build_id.empty());
}

// With demangling off the linkage name is given.
TEST(SymbolizerTest, GivesLinkageNameWhenDemanglingIsOff) {
  Symbolizer symbolizer({.demangle = SymbolizerOptions::Demangle::kOff});
  const UserSymbol symbol = symbolizer.Resolve(OwnImage(), KnownAddress());
  EXPECT_THAT(std::string(symbol.name), testing::StartsWith("_ZN4ksym"));
}

// A library's function is named from its dynamic symbols by its public alias.
TEST(SymbolizerTest, NamesLibraryFunction) {
  Symbolizer symbolizer({});
  const UserSymbol symbol = symbolizer.Resolve(
      OwnImage(), AddressOf(reinterpret_cast<const void*>(&::getpid)));
  EXPECT_EQ(symbol.name, "getpid");
  EXPECT_THAT(std::string(symbol.module), testing::HasSubstr("libc.so"));
}

// The vdso is named from this process's own image.
TEST(SymbolizerTest, NamesVdso) {
  const uint64_t vdso = ::getauxval(AT_SYSINFO_EHDR);
  if (vdso == 0) GTEST_SKIP() << "the kernel gives no vdso";
  Symbolizer symbolizer({});
  const ProcessImage image = OwnImage();
  bool named = false;
  for (uint64_t at = 0; at < 4096; at += 16) {
    const UserSymbol symbol = symbolizer.Resolve(image, {vdso + at});
    EXPECT_EQ(symbol.module, "[vdso]");
    named = named || symbol.name.find("clock_gettime") != std::string::npos;
  }
  EXPECT_TRUE(named);
}

// A child of this process that sleeps until it is ended.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ == 0) {
      for (;;) ::pause();
    }
  }
  ~Child() { End(); }
  void End() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// Files that were pinned while the process lived are named after its end.
TEST(SymbolizerTest, NamesAfterTheProcessExited) {
  Child child;
  const ProcessImage image = ImageOf(child.pid());
  Symbolizer symbolizer({});
  symbolizer.Pin(image);
  child.End();
  EXPECT_THAT(std::string(symbolizer.Resolve(image, KnownAddress()).name),
              testing::HasSubstr("KnownFunction"));
}

// A file that was not pinned in time, but is still where it was, is found by
// its path and inode.
TEST(SymbolizerTest, FindsTheFileOfAProcessThatIsGone) {
  Child child;
  const ProcessImage image = ImageOf(child.pid());
  Symbolizer symbolizer({});
  child.End();
  EXPECT_THAT(std::string(symbolizer.Resolve(image, KnownAddress()).name),
              testing::HasSubstr("KnownFunction"));
}

// One that is not there any more says so, and does not become another file.
TEST(SymbolizerTest, SaysThatTheFileIsGone) {
  Child child;
  ProcessImage image = ImageOf(child.pid());
  for (Mapping& mapping : image.mappings)
    mapping.path = mapping.path.str() + ".gone";
  Symbolizer symbolizer({});
  child.End();
  const UserSymbol symbol = symbolizer.Resolve(image, KnownAddress());
  EXPECT_EQ(symbol.reason, Unresolved::kGone);
  EXPECT_EQ(symbol.name, "");
  // Another process with the same file makes up for it.
  const ProcessImage own = OwnImage();
  symbolizer.Pin(own);
  EXPECT_EQ(symbolizer.Resolve(image, KnownAddress()).reason,
            Unresolved::kNone);
}

// Another file at the same path is not taken for the one that was mapped.
TEST(SymbolizerTest, TakesNoOtherFileForTheOneThatIsGone) {
  Child child;
  ProcessImage image = ImageOf(child.pid());
  for (Mapping& mapping : image.mappings) ++mapping.inode;
  Symbolizer symbolizer({});
  child.End();
  const UserSymbol symbol = symbolizer.Resolve(image, KnownAddress());
  EXPECT_EQ(symbol.name, "");
  EXPECT_NE(symbol.reason, Unresolved::kNone);
}

// Code in memory without a file is named by the process's perf map, also when
// the map comes or grows later.
TEST(SymbolizerTest, NamesJitCode) {
  void* code = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  const auto append = [&](int offset, const char* name) {
    char line[80];
    std::snprintf(line, sizeof(line), "%lx 10 %s\n",
                  reinterpret_cast<unsigned long>(code) + offset, name);
    std::ofstream(path, std::ios::app) << line;
  };
  ::unlink(path.c_str());
  Symbolizer symbolizer({});
  const ProcessImage image = OwnImage();
  symbolizer.Pin(image);
  EXPECT_EQ(symbolizer.Resolve(image, AddressOf(code)).reason,
            Unresolved::kAnonymous);
  append(0, "LazyCompile:~one a.js:1");
  symbolizer.Pin(image);
  const UserSymbol symbol = symbolizer.Resolve(image, AddressOf(code) + 4);
  EXPECT_EQ(symbol.name, "LazyCompile:~one a.js:1");
  EXPECT_EQ(symbol.symbol_offset, 4u);
  append(16, "two");
  symbolizer.Pin(image);
  EXPECT_EQ(symbolizer.Resolve(image, AddressOf(code) + 16).name, "two");
  ::unlink(path.c_str());
  ::munmap(code, 4096);
}

// Every reason has a name of its own.
TEST(UnresolvedTest, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Unresolved::kNotInTime); ++i) {
    names.insert(UnresolvedName(static_cast<Unresolved>(i)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(Unresolved::kNotInTime) + 1);
  EXPECT_EQ(UnresolvedName(Unresolved::kNoSymbol), "no-symbol");
}

}  // namespace
}  // namespace ksym
