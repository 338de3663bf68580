// SPDX-License-Identifier: Apache-2.0
#include "ksym/demangle/demangle.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace ksym {
namespace {

// Each language's names are written as in its source.
TEST(DemangleTest, ReadsEachLanguage) {
  EXPECT_EQ(Demangle("_ZN3foo3barEiPKc"), "foo::bar(int, char const*)");
  EXPECT_EQ(Demangle("_ZNSt6vectorIiSaIiEE9push_backEOi"),
            "std::vector<int, std::allocator<int> >::push_back(int&&)");
  // Rust, v0 and legacy, without the legacy hash.
  EXPECT_EQ(Demangle("_RNvC6_123foo3bar"), "123foo::bar");
  EXPECT_EQ(Demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt");
  EXPECT_EQ(Demangle("_D3foo3barFZv"), "foo.bar()");
}

// Other names stay as they are.
TEST(DemangleTest, LeavesOtherNames) {
  for (const std::string_view name :
       {"", "_", "_Z", "main", "_start", "__write", "_Zfoo", "_Rust", "_Dmain",
        "foo::bar", "_ZN3foo", "runtime.main", "_ZN3foo3barE@@V1\n"}) {
    const std::string result = Demangle(name);
    EXPECT_FALSE(result.empty() && !name.empty()) << name;
  }
  EXPECT_EQ(Demangle("_Zfoo"), "_Zfoo");
  EXPECT_EQ(Demangle("_ZN3foo"), "_ZN3foo");
  EXPECT_EQ(Demangle("main"), "main");
}

// What a linker or compiler adds behind the mangling is kept.
TEST(DemangleTest, KeepsSuffixes) {
  EXPECT_EQ(Demangle("_ZN3foo3barEv@plt"), "foo::bar()@plt");
  EXPECT_EQ(Demangle("_ZN3foo3barEv@@V1.0"), "foo::bar()@@V1.0");
  EXPECT_EQ(Demangle("_ZN3foo3barEv.cold"), "foo::bar() [clone .cold]");
  EXPECT_EQ(Demangle("_ZN3foo3barEv.isra.0"), "foo::bar() [clone .isra.0]");
}

// Every beginning of a valid name is read or left, without a read behind it.
TEST(DemangleTest, SurvivesEachTruncation) {
  for (const std::string_view name :
       {"_ZNSt6vectorIiSaIiEE9push_backEOi", "_RINvNtC3std3mem8align_ofdE",
        "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
        "_D3std5stdio4File5closeMFNeZv"}) {
    for (size_t size = 0; size <= name.size(); ++size) {
      EXPECT_FALSE(Demangle(name.substr(0, size)).empty() && size > 0);
    }
  }
}

// A name of the longest allowed length is read, one byte more is not.
TEST(DemangleTest, BoundsTheInput) {
  const auto name = [](size_t component) {
    return "_Z" + std::to_string(component) + std::string(component, 'x') + "v";
  };
  const size_t component = kMaxMangledBytes - name(1000).size() + 1000;
  ASSERT_EQ(name(component).size(), kMaxMangledBytes);
  EXPECT_EQ(Demangle(name(component)), std::string(component, 'x') + "()");
  EXPECT_EQ(Demangle(name(component + 1)), name(component + 1));
}

// Nesting as deep as the length allows does not end the program.
TEST(DemangleTest, SurvivesDeepNesting) {
  for (const std::string_view part :
       {"P", "FvF", "Z1f", "1aI", "XL_Z1f", "N"}) {
    std::string name = "_Z1f";
    while (name.size() + part.size() <= kMaxMangledBytes) name += part;
    EXPECT_FALSE(Demangle(name).empty()) << part;
    EXPECT_FALSE(Demangle(name.substr(0, name.size() - 1) + "i").empty());
  }
}

// Arguments that double with each substitution would fill the memory and take
// years: the name is given up.
TEST(DemangleTest, GivesUpOnDoublingNames) {
  // S_ is std::pair, S0_ std::pair<int, int>, S1_ a pair of two S0_ ...
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const auto doubled = [kDigits](size_t times) {
    std::string name = "_Z1fSt4pairIiiE";
    for (size_t i = 0; i < times; ++i) {
      const std::string previous = {'S', kDigits[i], '_'};
      name.append("S_I").append(previous).append(previous).append("E");
    }
    return name;
  };
  EXPECT_EQ(Demangle(doubled(1)),
            "f(std::pair<int, int>, "
            "std::pair<std::pair<int, int>, std::pair<int, int> >)");
  EXPECT_EQ(Demangle(doubled(30)), doubled(30));
}

}  // namespace
}  // namespace ksym
