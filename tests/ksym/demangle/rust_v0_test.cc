// SPDX-License-Identifier: Apache-2.0
#include "ksym/demangle/rust_v0.h"

#include <gtest/gtest.h>

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/demangle/demangle.h"
#include "ksym/demangle/rust_reader.h"

namespace ksym {
namespace {

// The text of a type, as an argument of a::b.
std::string TypeText(const std::string& mangled) {
  const std::string text = DemangleRustV0("_RINvC1a1b" + mangled + "E");
  constexpr std::string_view kBegin = "a::b::<";
  if (!text.starts_with(kBegin) || !text.ends_with('>')) return text;
  return text.substr(kBegin.size(), text.size() - kBegin.size() - 1);
}

struct Case {
  const char* mangled;
  const char* text;  // empty: it is refused
};

void ExpectNames(std::initializer_list<Case> cases) {
  for (const auto& [mangled, text] : cases) {
    EXPECT_EQ(DemangleRustV0(mangled), text) << mangled;
  }
}

void ExpectTypes(std::initializer_list<Case> cases) {
  for (const auto& [mangled, text] : cases) {
    EXPECT_EQ(TypeText(mangled), text) << mangled;
  }
}

// To a place behind "_R".
std::string BackReference(size_t at) {
  constexpr std::string_view kDigits =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (at == 0) return "B_";
  std::string digits;
  size_t rest = at - 1;
  do {
    digits.insert(digits.begin(), kDigits[rest % 62]);
    rest /= 62;
  } while (rest > 0);
  return "B" + digits + "_";
}

TEST(RustV0Test, ReadsPaths) {
  ExpectNames({{"_RC1a", "a"},
               {"_RNvCs15kBYyAo9fc_7mycrate7example", "mycrate::example"},
               {"_RNvNtC1a1b1c", "a::b::c"},
               {"_RNvMs_C1aNtB4_1S1f", "<a::S>::f"},
               {"_RNvXC1aNtB2_1SNtB2_1T1f", "<a::S as a::T>::f"},
               {"_RNvYNtC1a1SNtB4_1T1fB4_", "<a::S as a::T>::f"},
               {"_RINvC1a1blNtB2_1SL_KpE", "a::b::<i32, a::S, '_, _>"},
               // A type is "S<i32>", a value "f::<i32>".
               {"_RINvMC1aINtB3_1SlE1fmE", "<a::S<i32>>::f::<u32>"}});
}

TEST(RustV0Test, ReadsNamespaces) {
  ExpectNames({{"_RNCNvC1a1f0", "a::f::{closure#0}"},
               {"_RNCNCNvC1a1fs_0sb_0", "a::f::{closure#1}::{closure#13}"},
               {"_RNSNvC1a1f6vtable", "a::f::{shim:vtable#0}"},
               {"_RNQNvC1a1fs0_1x", "a::f::{Q:x#2}"},
               {"_RNaC1a0", "a"},
               {"_RN1C1a1b", ""}});
}

TEST(RustV0Test, ReadsIdentifiers) {
  ExpectNames({{"_RNvC6_123foo3bar", "123foo::bar"},
               {"_RNvC1a2__b", "a::_b"},
               {"_RNvCu8gdel_5qa6escher", "gödel::escher"},
               {"_RNvC1au6n84amf", "a::铁锈"},
               {"_RNvC1au0", ""},
               {"_RNvC1au3_999", ""},
               {"_RNvC1a99b", ""},
               {"_RNvC1a99999999999999999999999b", ""}});
}

TEST(RustV0Test, ReadsBasicTypes) {
  constexpr std::string_view kTags = "abcdefhijlmnopstuvxyz";
  const std::vector<std::string> names = {
      "i8",    "bool",  "char", "f64", "str",  "f32",  "u8",
      "isize", "usize", "i32",  "u32", "i128", "u128", "_",
      "i16",   "u16",   "()",   "...", "i64",  "u64",  "!"};
  ASSERT_EQ(names.size(), kTags.size());
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(TypeText(std::string(1, kTags[i])), names[i]);
  }
  EXPECT_EQ(TypeText("C4f128"), "f128");
  for (const char* tag : {"g", "k", "q", "r", "w", "W", "_", "0", ""}) {
    EXPECT_EQ(DemangleRustV0(std::string("_RMC1a") + tag), "") << tag;
  }
}

TEST(RustV0Test, ReadsCompoundTypes) {
  ExpectTypes({{"Alj8_", "[i32; 8]"},
               {"AlKp", ""},
               {"Alp", "[i32; _]"},
               {"Sl", "[i32]"},
               {"TE", "()"},
               {"TlE", "(i32,)"},
               {"TlmE", "(i32, u32)"},
               {"Re", "&str"},
               {"RL_e", "&str"},
               {"QSh", "&mut [u8]"},
               {"PRh", "*const &u8"},
               {"Oh", "*mut u8"}});
}

TEST(RustV0Test, ReadsFunctions) {
  ExpectTypes({{"FEu", "fn()"},
               {"FlmEh", "fn(i32, u32) -> u8"},
               {"FUKCPhEz", "unsafe extern \"C\" fn(*const u8) -> !"},
               {"FK8C_unwindEu", "extern \"C-unwind\" fn()"},
               {"FK2__xEu", "extern \"-x\" fn()"},
               {"FK0Eu", ""},
               {"FKu8gdel_5qaEu", ""},
               {"FG0_RL1_hRL0_tEu", "for<'a, 'b> fn(&'a u8, &'b u16)"},
               {"FG_FG_RL0_hRL1_hEuEQL0_h",
                "for<'a> fn(for<'b> fn(&'b u8, &'a u8)) -> &'a mut u8"},
               // No binder has it.
               {"L0_", ""},
               {"FG_RL1_hEu", ""}});
  EXPECT_TRUE(
      TypeText("FGr_RL0_hEu").ends_with("'z, '_26, '_27, '_28> fn(&'_28 u8)"));
}

TEST(RustV0Test, ReadsTraitObjects) {
  ExpectTypes({{"DNtC1a1TEL_", "dyn a::T"},
               {"DNtC1a1TNtBa_4SendEL_", "dyn a::T + a::Send"},
               {"DNtC1a1Tp1Xlp1YeEL_", "dyn a::T<X = i32, Y = str>"},
               {"DINtC1a1Tlp1XhEEL_", ""},
               {"DINtC1a1TlEp1XhEL_", "dyn a::T<i32, X = u8>"},
               // The same by a back reference to the trait with its arguments.
               {"INtC1a1TlEDB7_p1XhEL_", "a::T<i32>, dyn a::T<i32, X = u8>"},
               {"DG_INtC1a2FnTRL0_hEEp6OutputuEL_",
                "dyn for<'a> a::Fn<(&'a u8,), Output = ()>"},
               {"FG_DNtC1a1TEL0_Eu", "for<'a> fn(dyn a::T + 'a)"},
               {"DNtC1a1TE", ""}});
}

TEST(RustV0Test, ReadsConstants) {
  ExpectTypes(
      {{"Kj0_Kh1_KyffffffffffffffffE", ""},
       {"Kj0_Kh1_Kyffffffffffffffff_", "0, 1, 18446744073709551615"},
       {"Kln5_Kan80_Kx7fffffffffffffff_", "-5, -128, 9223372036854775807"},
       {"Kb0_Kb1_", "false, true"},
       {"Kc41_Kc9_Kcd_Kca_Kc0_Kc7f_",
        "'A', '\\t', '\\r', '\\n', '\\u{0}', '\\u{7f}'"},
       {"Kc20_Kc7e_Kc22_Kc27_Kc5c_", R"(' ', '~', '"', '\'', '\\')"},
       {"Kce9_Kc1f600_", R"('\u{e9}', '\u{1f600}')"},
       {"Kj7_KB9_", ""},
       {"Kj7_KB8_", "7, 7"}});
  for (const char* none : {"Kj_", "Kjn1_", "Kj1", "KjF_", "Kb2_", "Kb00_",
                           "Kc110000_", "Kcd800_", "Kc_", "Kd1_", "Ke_"}) {
    EXPECT_EQ(TypeText(none), "") << none;
  }
}

// What libiberty 2.40 shows without its first digit.
TEST(RustV0Test, KeepsLongConstants) {
  ExpectTypes({{"Ko123456789abcdef01234_", "0x123456789abcdef01234"},
               {"Ko11111111111111111_Ko21111111111111111_",
                "0x11111111111111111, 0x21111111111111111"},
               {"Knnfedcba98765432100_", "-0xfedcba98765432100"}});
}

TEST(RustV0Test, ReadsBackReferences) {
  ExpectNames({{"_RINvC7mycrate7exampleNtB2_7ExampleBz_EB2_", ""},
               {"_RINvC7mycrate7exampleNtB2_7ExampleBj_EB2_",
                "mycrate::example::<mycrate::Example, mycrate::Example>"}});
  // To itself, forward, out of the name, also where nothing is written.
  for (const char* none :
       {"_RB_", "_RNvB1_1a", "_RINvC1a1bBa_E", "_RINvC1a1bBzzzzzzzzzzzzz_E",
        "_RNvMBzz_l1f", "_RNvC1a1bBzz_", "_RNvC1a1bB"}) {
    EXPECT_EQ(DemangleRustV0(none), "") << none;
  }
}

TEST(RustV0Test, PassesOverCrateAndSuffix) {
  ExpectNames({{"_RINvC1a1blECs_7another", "a::b::<i32>"},
               {"_RNvC1a1b.llvm.5540057329546874339", "a::b"},
               {"_RNvC1a1bC1cC1d", ""}});
  // A version, which is none yet, and what is no byte of a name.
  for (const char* none : {"_R", "_R.", "_R0NvC1a1b", "_RNvC1a1b$tlv",
                           "_RNvC1a1b c", "_RNvC2é1b", "RNvC1a1b"}) {
    EXPECT_EQ(DemangleRustV0(none), "") << none;
  }
}

TEST(RustV0Test, RefusesEachTruncation) {
  // Without the last back reference, to its crate, it is whole as well.
  constexpr std::string_view kName =
      "_RINvC1a1bFG0_RL1_hAhj1_ENtMs_B2_l1SINtB2_1TDNtB2_1Up1XeEL_EKc41_E";
  constexpr std::string_view kCrate = "B2_";
  const std::string text =
      "a::b::<for<'a, 'b> fn(&'a u8, [u8; 1]) -> <i32>::S, "
      "a::T<dyn a::U<X = str>>, 'A'>";
  const std::string name = std::string(kName).append(kCrate);
  for (size_t size = 0; size <= name.size(); ++size) {
    const bool is_whole = size == kName.size() || size == name.size();
    EXPECT_EQ(DemangleRustV0(name.substr(0, size)), is_whole ? text : "")
        << size;
  }
}

TEST(RustV0Test, BoundsTheDepth) {
  const auto nested = [](size_t depth) {
    return TypeText(std::string(depth, 'S') + "l");
  };
  constexpr size_t kOuter = 2;  // the path with arguments, and "i32"
  EXPECT_EQ(nested(kMaxRustDepth - kOuter),
            std::string(kMaxRustDepth - kOuter, '[') + "i32" +
                std::string(kMaxRustDepth - kOuter, ']'));
  EXPECT_EQ(nested(kMaxRustDepth - kOuter + 1), "");
  for (const char* part : {"Nv", "M", "X", "Y", "I", "IC1aK", "F", "D", "A"}) {
    std::string name = "_R";
    while (name.size() < kMaxMangledBytes) name += part;
    EXPECT_EQ(DemangleRustV0(name), "") << part;
  }
}

TEST(RustV0Test, BoundsTheText) {
  // Each tuple has the one before it twice.
  const auto doubled = [](size_t times) {
    std::string name = "INvC1a1bThhE";
    size_t previous = 8;
    for (size_t i = 0; i < times; ++i) {
      const std::string back = BackReference(previous);
      previous = name.size();
      name += "T" + back + back + "E";
    }
    return DemangleRustV0("_R" + name + "E");
  };
  EXPECT_EQ(doubled(1), "a::b::<(u8, u8), ((u8, u8), (u8, u8))>");
  EXPECT_GT(doubled(9).size(), kMaxDemangledBytes / 2);
  EXPECT_EQ(doubled(20), "");
  // All lifetimes of a binder are written out.
  EXPECT_EQ(TypeText("FGzzzzzzzz_Eu"), "");
}

// Names that took libiberty years: nothing is written, so that nothing ends it.
TEST(RustV0Test, BoundsTheTime) {
  for (const std::string_view name :
       {"_RC0YYYYQYYYYQFFFFFGFFFYYQYYYYYYYYQQYY_RYQYYYYYYYYQYYYYYdbbbbYYYQbQ",
        "_RNvMFGzzzzzzzzz_EuC1a1b", "_RC1aYFGZZZZZZZZZ_EuC1a"}) {
    const auto begin = std::chrono::steady_clock::now();
    DemangleRustV0(name);
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(took, std::chrono::milliseconds(500)) << name;
  }
}

// Bytes that are read again and again are counted.
TEST(RustV0Test, BoundsTheSteps) {
  const auto repeated = [](size_t times) {
    // A long path that is written in one byte.
    std::string name = "INvC1a1b";
    const std::string back = BackReference(name.size());
    for (int i = 0; i < 400; ++i) name += "Nv";
    name += "C1x" + std::string(400, '0');
    for (size_t i = 0; i < times; ++i) name += back;
    return DemangleRustV0("_R" + name + "E");
  };
  EXPECT_EQ(repeated(2), "a::b::<x, x, x>");
  EXPECT_NE(repeated(RustReader::kMaxSteps / 1300), "");
  EXPECT_EQ(repeated(RustReader::kMaxSteps / 1200), "");
}

}  // namespace
}  // namespace ksym
