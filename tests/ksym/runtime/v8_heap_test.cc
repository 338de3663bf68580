// SPDX-License-Identifier: Apache-2.0
// Strings, functions, scripts and positions on a made heap of each version.

#include <gtest/gtest.h>

#include <string>

#include "ksym/runtime/v8/function.h"
#include "ksym/runtime/v8/script.h"
#include "ksym/runtime/v8/source_positions.h"
#include "ksym/runtime/v8/text.h"
#include "tests/ksym/runtime/made_v8_heap.h"

namespace ksym {
namespace {

constexpr uint16_t kConsType = 0x29;    // of one byte a character
constexpr uint16_t kSlicedType = 0x2b;  // likewise
constexpr uint16_t kThinType = 0x2d;    // likewise
constexpr uint16_t kExternalType = 0x2a;

class V8HeapTest : public testing::TestWithParam<size_t> {
 protected:
  std::optional<std::string> Text(V8Word string) const {
    const PieceMemory memory = made_.memory();
    return ReadV8Text(V8Heap(memory, layout_), string);
  }
  std::optional<V8Function> Function(V8Word shared) const {
    const PieceMemory memory = made_.memory();
    return ReadV8Function(V8Heap(memory, layout_), shared);
  }
  std::optional<V8Script> Script(V8Word script) const {
    const PieceMemory memory = made_.memory();
    return ReadV8Script(V8Heap(memory, layout_), script);
  }
  // A String of two words, with a length.
  V8Word NewPair(uint16_t type, uint32_t length, uint64_t first,
                 uint64_t second) {
    const V8Word string = made_.New(type, 32);
    made_.Set(string, 12, length);
    made_.Set(string, 16, first);
    made_.Set(string, 24, second);
    return string;
  }
  // The ScopeInfo of a function with so many variables in its context.
  V8Word NewScope(uint32_t variables, uint32_t flags, V8Word name,
                  V8Word inferred, uint32_t begin) {
    const bool first = layout_.scope_has_positions_first;
    const size_t names = variables < 75 ? variables : 1;
    const V8Word scope = made_.New(layout_.scope_info, 200 + 16 * variables);
    made_.Set(scope, 8, first ? uint64_t{flags} : MadeV8Heap::Smi(flags));
    made_.Set(scope, 24, MadeV8Heap::Smi(variables));
    uint64_t next = 32;
    if (first) {
      made_.Set(scope, 32, MadeV8Heap::Smi(begin));
      next = 48;
    }
    next += 8 * (names + variables);
    if ((flags & 1u << 10) != 0) next += 8;
    if ((flags & 3u << 12) != 0) {
      made_.Set(scope, next, name.bits);
      next += 16;
    }
    if ((flags & 1u << 14) != 0) {
      made_.Set(scope, next, inferred.bits);
      next += 8;
    }
    if (!first) made_.Set(scope, next, MadeV8Heap::Smi(begin));
    return scope;
  }
  // FUNCTION_SCOPE in that version.
  uint32_t function_scope() const {
    return layout_.scope_has_positions_first ? 4 : 2;
  }

  const V8Layout& layout_ = KnownV8Layouts()[GetParam()];
  MadeV8Heap made_ = MadeV8Heap(layout_);
};

// Strings of one and of two bytes a character, with characters beyond both.
TEST_P(V8HeapTest, SequentialStrings) {
  EXPECT_EQ(Text(made_.NewText("handle")), "handle");
  EXPECT_EQ(Text(made_.NewText("gr\xf6\xdf")), "gr\xc3\xb6\xc3\x9f");
  using namespace std::string_view_literals;
  EXPECT_EQ(Text(made_.NewText("\x3d\xd8\x00\xde\x41\x00\x00\xd8"sv, 2)),
            "\xf0\x9f\x98\x80"
            "A\xef\xbf\xbd");
  EXPECT_EQ(Text(made_.NewText("")), "");
}

TEST_P(V8HeapTest, StringsOfOthers) {
  const V8Word first = made_.NewText("Server.");
  const V8Word second = made_.NewText("handle");
  const V8Word cons = NewPair(kConsType, 13, first.bits, second.bits);
  EXPECT_EQ(Text(cons), "Server.handle");
  const V8Word thin = NewPair(kThinType, 6, second.bits, 0);
  EXPECT_EQ(Text(thin), "handle");
  const V8Word slice = NewPair(kSlicedType, 5, cons.bits, MadeV8Heap::Smi(4));
  EXPECT_EQ(Text(slice), "er.ha");
  const V8Word external =
      NewPair(kExternalType, 6, 0, second.object().value + 16);
  EXPECT_EQ(Text(external), "handle");
}

// What says of itself that it is longer than it is, or is made of itself, is no
// text, and takes a bounded time.
TEST_P(V8HeapTest, StringsThatLie) {
  const V8Word loop = NewPair(kConsType, 10, 0, 0);
  made_.Set(loop, 16, loop.bits);
  made_.Set(loop, 24, loop.bits);
  EXPECT_EQ(Text(loop), std::nullopt);
  const V8Word thin = NewPair(kThinType, 10, 0, 0);
  made_.Set(thin, 16, thin.bits);
  EXPECT_EQ(Text(thin), std::nullopt);
  const V8Word text = made_.NewText("abc");
  made_.Set(text, 12, uint32_t{0xffffffff});
  EXPECT_EQ(Text(text), std::nullopt);
  EXPECT_EQ(Text(NewPair(kSlicedType, 9, made_.NewText("abc").bits, 0)),
            std::nullopt);
  EXPECT_EQ(Text({MadeV8Heap::Smi(7)}), std::nullopt);
  EXPECT_EQ(Text(made_.New(layout_.script, 104)), std::nullopt);
}

TEST_P(V8HeapTest, LongStringsAreCut) {
  const auto text = Text(made_.NewText(std::string(5000, 'x')));
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, std::string(kMaxV8Text, 'x') + "\xe2\x80\xa6");
}

// A function has its name itself until it is compiled, then in its ScopeInfo.
TEST_P(V8HeapTest, Names) {
  const V8Word script = made_.NewScript(7, "/srv/server.js", "x");
  const V8Word name = made_.NewText("handle");
  const V8Word none = {MadeV8Heap::Smi(0)};
  EXPECT_EQ(Function(made_.NewFunction(name, script, 3))->name, "handle");
  EXPECT_EQ(Function(made_.NewFunction(none, script, 3))->name, "(anonymous)");
  const uint32_t named = function_scope() | 3u << 12;
  const uint32_t inferred = function_scope() | 1u << 14;
  for (const uint32_t variables : {0u, 1u, 74u, 75u, 76u, 300u}) {
    const auto of_scope = [&](uint32_t flags, V8Word own, V8Word guess) {
      const V8Word scope = NewScope(variables, flags, own, guess, 42);
      return Function(made_.NewFunction(scope, script, 3));
    };
    auto function = of_scope(named, name, none);
    ASSERT_TRUE(function) << variables;
    EXPECT_EQ(function->name, "handle");
    EXPECT_EQ(function->begin, 42u);
    EXPECT_EQ(function->script.bits, script.bits);
    EXPECT_EQ(of_scope(named | 1u << 10, name, none)->name, "handle");
    EXPECT_EQ(of_scope(inferred, none, name)->name, "handle");
    EXPECT_EQ(of_scope(named | inferred, made_.NewText(""), name)->name,
              "handle");
    EXPECT_EQ(of_scope(function_scope(), none, none)->name, "(anonymous)");
  }
}

// Another object in a function's place is none.
TEST_P(V8HeapTest, NoFunction) {
  EXPECT_FALSE(Function(made_.New(layout_.script, 104)));
  EXPECT_FALSE(Function({MadeV8Heap::Smi(3)}));
  EXPECT_FALSE(Function({0x123456789}));
  const V8Word shared = made_.NewFunction(made_.NewText("f"), {}, 1);
  made_.Set(shared, 0, shared.bits);  // no map
  EXPECT_FALSE(Function(shared));
  // More variables than a function has.
  const V8Word scope = NewScope(1, function_scope(), {}, {}, 0);
  made_.Set(scope, 24, MadeV8Heap::Smi(1u << 20));
  EXPECT_FALSE(
      Function(made_.NewFunction(scope, made_.NewScript(1, "a.js", ""), 3)));
}

TEST_P(V8HeapTest, LinesOfText) {
  const auto script =
      Script(made_.NewScript(7, "/srv/server.js", "a\nbc\r\nd\re"));
  ASSERT_TRUE(script);
  EXPECT_EQ(script->id, 7);
  EXPECT_EQ(script->name, "/srv/server.js");
  EXPECT_EQ(script->LineOf(0), 1u);
  EXPECT_EQ(script->LineOf(1), 1u);  // the end itself
  EXPECT_EQ(script->LineOf(2), 2u);
  EXPECT_EQ(script->LineOf(5), 2u);  // "\r\n" is one
  EXPECT_EQ(script->LineOf(6), 3u);
  EXPECT_EQ(script->LineOf(8), 4u);
  EXPECT_EQ(script->LineOf(9), 4u);
  EXPECT_EQ(script->LineOf(10), 0u);  // behind the text
}

// What V8 has computed itself is as good; what does not ascend is not used.
TEST_P(V8HeapTest, LinesOfV8) {
  const V8Word word = made_.NewScript(7, "x.js", "a\nb");
  made_.Set(word, V8Offsets::kScriptLineEnds,
            made_
                .NewArray(layout_.fixed_array,
                          {MadeV8Heap::Smi(4), MadeV8Heap::Smi(9)})
                .bits);
  made_.Set(word, V8Offsets::kScriptLineOffset, MadeV8Heap::Smi(10));
  auto script = Script(word);
  ASSERT_TRUE(script);
  EXPECT_EQ(script->LineOf(4), 11u);
  EXPECT_EQ(script->LineOf(5), 12u);
  made_.Set(word, V8Offsets::kScriptLineEnds,
            made_
                .NewArray(layout_.fixed_array,
                          {MadeV8Heap::Smi(9), MadeV8Heap::Smi(4)})
                .bits);
  script = Script(word);
  ASSERT_TRUE(script);
  EXPECT_EQ(script->LineOf(2), 12u);
}

TEST_P(V8HeapTest, Positions) {
  const auto form = layout_.positions_are_unsigned ? V8PositionForm::kUnsigned
                                                   : V8PositionForm::kSigned;
  std::string table = V8PositionEntry(layout_, 0, V8RawPosition(10));
  table += V8PositionEntry(layout_, 5, V8RawPosition(300) - V8RawPosition(10));
  table += V8PositionEntry(
      layout_, 200,
      static_cast<int64_t>(V8RawPosition(20, 3) - V8RawPosition(300)));
  const auto at = [&](uint32_t offset) {
    return FindV8Position(std::as_bytes(std::span(table)), form, offset);
  };
  EXPECT_EQ(at(0)->script_offset, 10u);
  EXPECT_EQ(at(4)->script_offset, 10u);
  EXPECT_EQ(at(5)->script_offset, 300u);
  EXPECT_EQ(at(204)->script_offset, 300u);
  EXPECT_FALSE(at(204)->inlining);
  EXPECT_EQ(at(205)->script_offset, 20u);
  EXPECT_EQ(at(0xffffffff)->inlining, 3u);
  table.resize(table.size() - 1);
  EXPECT_FALSE(at(205));
  table.clear();
  EXPECT_FALSE(at(0));
}

INSTANTIATE_TEST_SUITE_P(Versions, V8HeapTest,
                         testing::Range(size_t{0}, KnownV8Layouts().size()),
                         [](const testing::TestParamInfo<size_t>& version) {
                           std::string name(
                               KnownV8Layouts()[version.param].version);
                           name[name.find('.')] = '_';
                           return "V" + name;
                         });

}  // namespace
}  // namespace ksym
