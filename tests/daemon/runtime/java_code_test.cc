// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/java_code.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/ksym/runtime/made_jvm.h"

namespace profd {
namespace {

using std::string_view_literals::operator""sv;

// Line 10 from 0 on, 11 from 3 on.
constexpr std::string_view kLines = "\xff\x00\x14\x19\x00"sv;

// outer at its bytecode 4 has inner inlined, which is at 2.
class JavaCodeTest : public testing::Test {
 protected:
  JavaCodeTest() {
    outer_ = jvm_.NewMethod("a/Outer", "outer", 10, kLines);
    inner_ = jvm_.NewMethod("a/Inner", "inner", 10, kLines);
    nmethod_ =
        jvm_.NewCompiled(outer_, 7, "\xff\x00\x01\x05\x01\x02\x03"sv,
                         {outer_, inner_}, {{-1, 0}, {16, 4}, {1000, 0}});
  }
  RuntimeCode Compiled(uint32_t index, size_t native = 1) const {
    return {.native = native,
            .kind = kJavaCompiled,
            .code = nmethod_.value | uint64_t{7} << kJavaTagShift,
            .index = index};
  }
  RuntimeCode Interpreted(uint32_t index, uint64_t code) const {
    return {.native = 0,
            .kind = kJavaInterpreted,
            .code = outer_.value | (code >> 3 & 0xffff) << kJavaTagShift,
            .index = index};
  }
  uint64_t CodeOf(ksym::Address method) const {
    return ksym::ReadHotspotMethodIdentity(jvm_.memory(), layout_, method)
        .value_or(ksym::HotspotMethodIdentity())
        .code;
  }
  JavaFrames FramesOf(const RuntimeCode& code) {
    return code_.FramesOf(jvm_.memory(), code);
  }
  static std::vector<std::string> TextsOf(const JavaFrames& found) {
    std::vector<std::string> texts;
    for (const auto& [kind, frame] : found.frames) {
      texts.push_back(frame.name + ' ' + frame.file + ':' +
                      std::to_string(frame.line) +
                      (kind == kJavaInlined ? " inlined" : "") +
                      (frame.line_is_near ? " near" : ""));
    }
    return texts;
  }
  using Texts = std::vector<std::string>;

  ksym::MadeJvm jvm_;
  ksym::HotspotLayout& layout_ = jvm_.layout();
  ksym::Address outer_, inner_, nmethod_;
  JavaCode code_ = JavaCode(layout_);
};

TEST_F(JavaCodeTest, NamesInlinedMethodsAndLines) {
  const JavaFrames found = FramesOf(Compiled(15));
  EXPECT_EQ(found.inlining, JavaInlining::kKnown);
  EXPECT_EQ(TextsOf(found), (Texts{"a.Inner.inner a/Inner.java:10 inlined",
                                   "a.Outer.outer a/Outer.java:11"}));
  // Where the CPU is, the JVM describes a place near it.
  EXPECT_EQ(TextsOf(FramesOf(Compiled(15, 0))),
            (Texts{"a.Inner.inner a/Inner.java:10 inlined near",
                   "a.Outer.outer a/Outer.java:11 near"}));
  EXPECT_EQ(TextsOf(FramesOf(Compiled(9))),
            (Texts{"a.Inner.inner a/Inner.java:10 inlined near",
                   "a.Outer.outer a/Outer.java:11 near"}));
}

TEST_F(JavaCodeTest, SaysWhyInlinedMethodsAreMissing) {
  JavaFrames found = FramesOf(Compiled(500));
  EXPECT_EQ(found.inlining, JavaInlining::kNotDescribed);
  EXPECT_EQ(TextsOf(found), (Texts{"a.Outer.outer a/Outer.java:0"}));
  // The inlined method is none.
  jvm_.Set(inner_.value + 8, uint64_t{1});
  found = FramesOf(Compiled(15));
  EXPECT_EQ(found.inlining, JavaInlining::kCorrupt);
  EXPECT_EQ(TextsOf(found), (Texts{"a.Outer.outer a/Outer.java:0"}));
}

// The same holds of code that was read before.
TEST_F(JavaCodeTest, NamesNothingThatIsGone) {
  EXPECT_EQ(FramesOf(Compiled(15)).frames.size(), 2u);
  jvm_.Set(nmethod_.value + 304, uint32_t{8});
  EXPECT_TRUE(FramesOf(Compiled(15)).frames.empty());
  jvm_.Set(nmethod_.value + 304, uint32_t{7});
  jvm_.Set(nmethod_.value - 8, uint8_t{0});
  EXPECT_TRUE(FramesOf(Compiled(15)).frames.empty());
}

// A method with another name in the place of one that was read.
TEST_F(JavaCodeTest, NamesTheMethodThatIsThere) {
  EXPECT_EQ(TextsOf(FramesOf(Interpreted(4, CodeOf(outer_)))),
            (Texts{"a.Outer.outer a/Outer.java:11"}));
  const uint64_t constants =
      ksym::ReadHotspotMethodIdentity(jvm_.memory(), layout_, outer_)
          ->constants;
  jvm_.Set(constants + 72 + 8, jvm_.NewSymbol("other"));
  EXPECT_EQ(TextsOf(FramesOf(Interpreted(4, CodeOf(outer_)))),
            (Texts{"a.Outer.other a/Outer.java:11"}));
  // With other bytecodes it is another one.
  EXPECT_TRUE(FramesOf(Interpreted(4, CodeOf(inner_))).frames.empty());
}

}  // namespace
}  // namespace profd
