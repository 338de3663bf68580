// SPDX-License-Identifier: Apache-2.0
// Compiled code as a JVM describes it, and lines.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/runtime/hotspot/compiled_code.h"
#include "ksym/runtime/hotspot/line_table.h"
#include "ksym/runtime/hotspot/method.h"
#include "ksym/runtime/hotspot/numbers.h"
#include "tests/ksym/runtime/made_jvm.h"

namespace ksym {
namespace {

using std::string_view_literals::operator""sv;
constexpr auto kAny = HotspotNumbers::kAnyByte;
constexpr auto kNoZero = HotspotNumbers::kNoZero;

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::optional<uint32_t> NumberIn(std::string_view text, HotspotNumbers form) {
  return HotspotNumberReader(BytesOf(text), form).Next();
}

TEST(HotspotNumbersTest, AreOfOneToFiveBytes) {
  EXPECT_EQ(NumberIn("\x00"sv, kAny), 0u);
  EXPECT_EQ(NumberIn("\xbf"sv, kAny), 191u);
  EXPECT_EQ(NumberIn("\xc0\x00"sv, kAny), 192u);
  EXPECT_EQ(NumberIn("\xc1\x02"sv, kAny), 193u + 128);
  EXPECT_EQ(NumberIn("\xff\xff\xff\xff\xff"sv, kAny),
            255u * (1 + 64 + 4096 + 262144) + (255u << 24));
  EXPECT_EQ(NumberIn("\x01"sv, kNoZero), 0u);
  EXPECT_EQ(NumberIn("\xbf"sv, kNoZero), 190u);
  EXPECT_EQ(NumberIn("\xc0\x01"sv, kNoZero), 191u);
  // No byte of these is 0.
  EXPECT_EQ(NumberIn("\x00"sv, kNoZero), std::nullopt);
  EXPECT_EQ(NumberIn("\xc0\x00"sv, kNoZero), std::nullopt);
  EXPECT_EQ(NumberIn("\xc0"sv, kAny), std::nullopt);
  EXPECT_EQ(NumberIn(""sv, kAny), std::nullopt);
}

TEST(HotspotNumbersTest, HaveTheSignBelow) {
  HotspotNumberReader reader(BytesOf("\x06\x05\x01"sv), kAny);
  EXPECT_EQ(reader.NextSigned(), 3);
  EXPECT_EQ(reader.NextSigned(), -3);
  EXPECT_EQ(reader.NextSigned(), -1);
}

// Line 10 at 0, 11 at 3, 9 at 20, as a loop goes back.
constexpr std::string_view kLines = "\xff\x00\x14\x19\xff\x22\x03\x00"sv;

TEST(HotspotLinesTest, AreOfTheBytecodeBefore) {
  const auto line = [](uint32_t bytecode) {
    return HotspotLineAt(BytesOf(kLines), kAny, bytecode);
  };
  EXPECT_EQ(line(0), 10u);
  EXPECT_EQ(line(2), 10u);
  EXPECT_EQ(line(3), 11u);
  EXPECT_EQ(line(19), 11u);
  EXPECT_EQ(line(20), 9u);
  EXPECT_EQ(line(1000), 9u);
  EXPECT_EQ(HotspotLineTableBytes(BytesOf(kLines), kAny), kLines.size());
  EXPECT_EQ(HotspotLineTableBytes(BytesOf(std::string(kLines) + "rest"), kAny),
            kLines.size());
}

TEST(HotspotLinesTest, AreNoneInWhatHasNoEnd) {
  for (size_t size = 0; size < kLines.size(); ++size) {
    const auto cut = BytesOf(kLines.substr(0, size));
    EXPECT_EQ(HotspotLineAt(cut, kAny, 3), std::nullopt) << size;
    EXPECT_EQ(HotspotLineTableBytes(cut, kAny), 0u) << size;
  }
  // Before the first entry, and a line below 1.
  EXPECT_EQ(HotspotLineAt(BytesOf("\x19\x00"sv), kAny, 2), std::nullopt);
  EXPECT_EQ(HotspotLineAt(BytesOf("\xff\x00\x03\x00"sv), kAny, 0),
            std::nullopt);
}

// outer, into which middle is inlined, and inner into that.
class HotspotCodeTest : public testing::Test {
 protected:
  HotspotCodeTest() {
    outer_ = jvm_.NewMethod("a/Outer", "outer", 10, kLines);
    middle_ = jvm_.NewMethod("a/Middle", "middle", 10, kLines);
    inner_ = jvm_.NewMethod("a/Inner", "inner", 10, kLines);
    nmethod_ = jvm_.NewCompiled(
        outer_, 0x10007,
        // At 1: outer at 4. At 4: middle at 5. At 7: inner where it is entered.
        "\xff\x00\x01\x05\x01\x02\x06\x04\x03\x00"sv, {outer_, middle_, inner_},
        {{-1, 0}, {16, 1}, {32, 4}, {48, 7}, {1000, 0}});
  }
  Result<HotspotScopes> ScopesAt(uint32_t place) {
    const auto code =
        HotspotCompiledCode::Read(jvm_.memory(), jvm_.layout(), nmethod_, 7);
    if (!code) return Fail(code.error());
    return code->ScopesAt(place);
  }
  ErrorCode FailureAt(uint32_t place) {
    const auto scopes = ScopesAt(place);
    EXPECT_FALSE(scopes);
    return scopes ? ErrorCode::kIo : scopes.error().code();
  }
  // One call, outer at 4, in memory beside the blob.
  void DescribeElsewhere() {
    HotspotLayout& layout = jvm_.layout();
    layout.nmethod_pcs = 196;
    layout.nmethod_scopes = 200;
    layout.nmethod_immutable = 208;
    layout.nmethod_immutable_size = 216;
    layout.numbers = kNoZero;
    const uint64_t immutable = jvm_.New(256);
    const uint64_t at = nmethod_.value;
    jvm_.Set(at + 208, immutable);
    jvm_.Set(at + 216, int32_t{80});
    jvm_.Set(at + 196, int32_t{16});
    jvm_.Set(at + 200, int32_t{64});
    jvm_.Set(immutable + 16, int32_t{-1});
    jvm_.Set(immutable + 32, int32_t{16});
    jvm_.Set(immutable + 36, int32_t{1});
    jvm_.Set(immutable + 48, int32_t{1000});
    jvm_.SetBytes(immutable + 64, "\xff\x01\x02\x06"sv);
  }
  // Where scopes begin, in memory.
  uint64_t scopes() const { return nmethod_.value + 352 + 24; }

  MadeJvm jvm_;
  Address outer_, middle_, inner_, nmethod_;
};

TEST_F(HotspotCodeTest, NamesWhatIsInlined) {
  auto scopes = ScopesAt(15);
  ASSERT_TRUE(scopes) << scopes.error().message();
  EXPECT_TRUE(scopes->is_exact);
  EXPECT_THAT(scopes->scopes, testing::ElementsAre(HotspotScope{outer_, 4}));
  scopes = ScopesAt(31);
  ASSERT_TRUE(scopes) << scopes.error().message();
  EXPECT_THAT(scopes->scopes, testing::ElementsAre(HotspotScope{middle_, 5},
                                                   HotspotScope{outer_, 4}));
  scopes = ScopesAt(40);
  ASSERT_TRUE(scopes) << scopes.error().message();
  EXPECT_FALSE(scopes->is_exact);
  EXPECT_THAT(
      scopes->scopes,
      testing::ElementsAre(HotspotScope{inner_, std::nullopt},
                           HotspotScope{middle_, 5}, HotspotScope{outer_, 4}));
}

TEST_F(HotspotCodeTest, SaysWhereNothingIsDescribed) {
  EXPECT_EQ(FailureAt(49), ErrorCode::kNotFound);
  EXPECT_EQ(FailureAt(1000), ErrorCode::kNotFound);
  EXPECT_EQ(FailureAt(2000), ErrorCode::kNotFound);
  EXPECT_EQ(FailureAt(UINT32_MAX), ErrorCode::kCorrupt);
}

// Neither a caller that is the callee nor other methods.
TEST_F(HotspotCodeTest, RefusesScopesThatCannotBe) {
  jvm_.Set(scopes() + 4, uint8_t{4});  // inlined into itself
  EXPECT_EQ(FailureAt(31), ErrorCode::kCorrupt);
  jvm_.Set(scopes() + 4, uint8_t{7});  // into what comes later
  EXPECT_EQ(FailureAt(31), ErrorCode::kCorrupt);
  jvm_.Set(scopes() + 4, uint8_t{0});  // into nothing
  EXPECT_EQ(FailureAt(31), ErrorCode::kCorrupt);
  jvm_.Set(scopes() + 4, uint8_t{1});
  EXPECT_TRUE(ScopesAt(31));
  jvm_.Set(scopes() + 5, uint8_t{4});  // there are three methods
  EXPECT_EQ(FailureAt(31), ErrorCode::kCorrupt);
  jvm_.Set(scopes() + 5, uint8_t{0});
  EXPECT_EQ(FailureAt(31), ErrorCode::kCorrupt);
  EXPECT_TRUE(ScopesAt(15));
}

TEST_F(HotspotCodeTest, TellsCodeFromCodeInItsPlace) {
  EXPECT_EQ(ReadHotspotMethodOf(jvm_.memory(), jvm_.layout(), nmethod_, 7),
            outer_);
  EXPECT_FALSE(ReadHotspotMethodOf(jvm_.memory(), jvm_.layout(), nmethod_, 8));
  const auto other =
      HotspotCompiledCode::Read(jvm_.memory(), jvm_.layout(), nmethod_, 8);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), ErrorCode::kNotFound);
  // Freed: its block is not in use.
  jvm_.Set(nmethod_.value - 8, uint8_t{0});
  EXPECT_FALSE(ReadHotspotMethodOf(jvm_.memory(), jvm_.layout(), nmethod_, 7));
  EXPECT_EQ(FailureAt(15), ErrorCode::kNotFound);
}

// Offsets that lie lead to no more than a bound.
TEST_F(HotspotCodeTest, RefusesTooMuch) {
  jvm_.Set(nmethod_.value + 272, int32_t{0x7fffffff});
  EXPECT_EQ(FailureAt(15), ErrorCode::kLimit);
  jvm_.Set(nmethod_.value + 272, int32_t{-1});
  EXPECT_EQ(FailureAt(15), ErrorCode::kNotFound);
  jvm_.layout().scopes = HotspotLayout::Scopes::kNone;
  EXPECT_EQ(FailureAt(15), ErrorCode::kUnsupported);
}

// As from JDK 25 on, all of it, and in JDK 23 and 24 but for the methods.
TEST_F(HotspotCodeTest, ReadsWhatLiesElsewhere) {
  DescribeElsewhere();
  HotspotLayout& layout = jvm_.layout();
  layout.scopes = HotspotLayout::Scopes::kOutOfBlob;
  layout.blob_mutable = 224;
  layout.blob_mutable_size = 232;
  layout.blob_relocation_size = 236;
  const uint64_t at = nmethod_.value;
  const uint64_t mutable_data = jvm_.New(64);
  jvm_.Set(at + 224, mutable_data);
  jvm_.Set(at + 232, int32_t{32});
  jvm_.Set(at + 236, int32_t{24});
  jvm_.Set(mutable_data + 24, outer_.value);
  const auto scopes = ScopesAt(15);
  ASSERT_TRUE(scopes) << scopes.error().message();
  EXPECT_THAT(scopes->scopes, testing::ElementsAre(HotspotScope{outer_, 4}));
}

TEST_F(HotspotCodeTest, ReadsMethodsBehindTheCode) {
  DescribeElsewhere();
  HotspotLayout& layout = jvm_.layout();
  layout.scopes = HotspotLayout::Scopes::kMethodsInBlob;
  layout.blob_code_end = 224;
  layout.blob_size = 228;
  layout.nmethod_methods = 232;
  const uint64_t at = nmethod_.value;
  jvm_.Set(at + 224, int32_t{600});
  jvm_.Set(at + 228, int32_t{600 + 24 + 8});
  jvm_.Set(at + 232, uint16_t{24});
  jvm_.Set(at + 234, uint16_t{0xffff});  // is another number
  jvm_.Set(at + 600 + 24, outer_.value);
  const auto scopes = ScopesAt(15);
  ASSERT_TRUE(scopes) << scopes.error().message();
  EXPECT_THAT(scopes->scopes, testing::ElementsAre(HotspotScope{outer_, 4}));
  // The blob ends in front of the first one.
  jvm_.Set(at + 228, int32_t{600 + 24 + 7});
  EXPECT_EQ(FailureAt(15), ErrorCode::kCorrupt);
}

TEST_F(HotspotCodeTest, ReadsMethods) {
  const auto identity =
      ReadHotspotMethodIdentity(jvm_.memory(), jvm_.layout(), middle_);
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->bytecodes, 10);
  const auto method =
      ReadHotspotMethod(jvm_.memory(), jvm_.layout(), *identity);
  ASSERT_TRUE(method);
  EXPECT_EQ(method->name, "a.Middle.middle");
  EXPECT_EQ(method->file, "a/Middle.java");
  EXPECT_EQ(HotspotLineAt(method->lines, kAny, 5), 11u);
}

}  // namespace
}  // namespace ksym
