#include "ksym/symbolizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace ksym {
namespace {

[[gnu::noinline]] int KnownFunction(int x) { return x * 3 + 1; }

Address AddressOf(const void* p) { return {reinterpret_cast<uint64_t>(p)}; }

ProcessImage OwnImage() {
  ProcessImage image;
  image.id.pid = static_cast<uint32_t>(::getpid());
  auto mappings = ReadMaps(image.id.pid);
  EXPECT_TRUE(mappings);
  if (mappings) image.mappings = std::move(*mappings);
  return image;
}

// A function of this program is named, demangled, with module and offsets.
TEST(SymbolizerTest, NamesOwnFunction) {
  Symbolizer symbolizer({});
  const ProcessImage image = OwnImage();
  symbolizer.Pin(image);
  const Address address =
      AddressOf(reinterpret_cast<const void*>(&KnownFunction));
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
  const UserSymbol symbol = symbolizer.Resolve(
      OwnImage(), AddressOf(reinterpret_cast<const void*>(&KnownFunction)));
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

}  // namespace
}  // namespace ksym
