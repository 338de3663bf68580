// SPDX-License-Identifier: Apache-2.0
// Compiled code on a made heap of each version.

#include "ksym/runtime/v8/code.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "ksym/runtime/v8/bytecodes.h"
#include "tests/ksym/runtime/made_v8_heap.h"

namespace ksym {
namespace {

constexpr uint64_t kCodeSpace = 0x7f0000000000;
constexpr uint32_t kCodeBytes = 0x400;

class V8CodeTest : public testing::TestWithParam<size_t> {
 protected:
  V8CodeTest() { made_.PutAt(kCodeSpace, kMaxV8CodeBytes + 0x10000); }

  uint64_t begin() const { return stream_ + layout_.code_header; }

  // Code for `shared` at an offset in code space, with that table.
  void MakeCode(uint64_t offset, V8Word shared, const std::string& table,
                const std::string& inlinings,
                const std::vector<uint64_t>& literals) {
    stream_ = kCodeSpace + offset;
    made_.SetAt(stream_, made_.MapOf(layout_.instruction_stream).bits);
    code_ = {stream_ | 1};
    if (layout_.code_start != 0) {
      code_ = made_.New(layout_.code, 96);
      made_.Set(code_, layout_.code_start, begin());
    }
    made_.SetAt(stream_ + 8, code_.bits);
    if (layout_.wrapper != 0) {
      const V8Word wrapper = made_.New(layout_.wrapper, 16);
      made_.Set(wrapper, layout_.wrapper_shared, shared.bits);
      shared = wrapper;
    }
    std::vector<uint64_t> data(10);
    data[layout_.deoptimization_literals] =
        made_.NewArray(layout_.fixed_array, literals).bits;
    data[layout_.deoptimization_shared] = shared.bits;
    data[layout_.deoptimization_positions] = made_.NewBytes(inlinings).bits;
    made_.Set(code_, layout_.code_deoptimization,
              made_.NewArray(layout_.fixed_array, data).bits);
    made_.Set(code_, layout_.code_positions, made_.NewBytes(table).bits);
    made_.Set(code_, layout_.code_size, kCodeBytes);
    made_.Set(code_, layout_.code_flags, uint32_t{0x7c});
  }
  std::optional<V8Code> Find(uint64_t pc) {
    const PieceMemory memory = made_.memory();
    return finder_.Find(V8Heap(memory, layout_), {pc});
  }
  V8Word NewFunction(uint32_t number) {
    return made_.NewFunction(made_.NewText("f"), {}, number);
  }
  static std::string Inlined(uint64_t position, int32_t function) {
    std::string bytes(16, '\0');
    std::memcpy(bytes.data(), &position, sizeof(position));
    std::memcpy(bytes.data() + 8, &function, sizeof(function));
    return bytes;
  }

  const V8Layout& layout_ = KnownV8Layouts()[GetParam()];
  MadeV8Heap made_ = MadeV8Heap(layout_);
  V8CodeFinder finder_;
  uint64_t stream_ = 0;
  V8Word code_;
};

// Inlined functions come first, each with the place where it was.
TEST_P(V8CodeTest, Inlined) {
  const V8Word outer = NewFunction(1);
  const V8Word middle = NewFunction(2);
  const V8Word inner = NewFunction(3);
  std::string table = V8PositionEntry(layout_, 0, V8RawPosition(5));
  table += V8PositionEntry(
      layout_, 0x100,
      static_cast<int64_t>(V8RawPosition(30, 1) - V8RawPosition(5)));
  MakeCode(0x20040, outer, table,
           Inlined(V8RawPosition(10), 0) + Inlined(V8RawPosition(20, 0), 1),
           {middle.bits, inner.bits});
  const auto plain = Find(begin() + 0xff);
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->is_baseline);
  ASSERT_EQ(plain->frames.size(), 1u);
  EXPECT_EQ(plain->frames[0].shared.bits, outer.bits);
  EXPECT_EQ(plain->frames[0].script_offset, 5u);
  const auto inlined = Find(begin() + 0x100);
  ASSERT_TRUE(inlined);
  ASSERT_EQ(inlined->frames.size(), 3u);
  EXPECT_EQ(inlined->frames[0].shared.bits, inner.bits);
  EXPECT_EQ(inlined->frames[0].script_offset, 30u);
  EXPECT_EQ(inlined->frames[1].shared.bits, middle.bits);
  EXPECT_EQ(inlined->frames[1].script_offset, 20u);
  EXPECT_EQ(inlined->frames[2].shared.bits, outer.bits);
  EXPECT_EQ(inlined->frames[2].script_offset, 10u);
}

// An address is of the code that it is in, and of none behind that or in front
// of its first instruction.
TEST_P(V8CodeTest, Ends) {
  MakeCode(0x20040, NewFunction(1), V8PositionEntry(layout_, 0, 2), "", {});
  EXPECT_TRUE(Find(begin()));
  EXPECT_TRUE(Find(begin() + kCodeBytes - 1));
  EXPECT_FALSE(Find(begin() + kCodeBytes));
  EXPECT_FALSE(Find(begin() - 1));
  EXPECT_FALSE(Find(stream_ - 8));
  // It lies too far before the address.
  EXPECT_FALSE(Find(begin() + kMaxV8CodeBytes + 0x2000));
}

TEST_P(V8CodeTest, Baseline) {
  MakeCode(0x20040, NewFunction(1), "", "", {});
  made_.Set(code_, layout_.code_flags, uint32_t{0x70} | layout_.baseline_kind);
  const auto code = Find(begin() + 3);
  ASSERT_TRUE(code);
  EXPECT_TRUE(code->is_baseline);
  EXPECT_TRUE(code->frames.empty());
  EXPECT_EQ(code->object.bits, code_.bits);
  EXPECT_FALSE(code->baseline_offset);
}

// Baseline code has the place of the instruction that it was made of, also
// behind ones with wide operands, and of the first one in its own beginning.
TEST_P(V8CodeTest, BaselineLines) {
  // LdaZero; LdaSmi, with the prefix Wide and so two bytes; LdaZero. The
  // numbers are the same in all versions.
  using std::string_literals::operator""s;
  const std::string code = "\x0c\0\x0d\xff\xff\x0c"s;
  const V8Bytecodes bytecodes = V8BytecodesOf(layout_.version);
  ASSERT_EQ(bytecodes.SizeAt(std::as_bytes(std::span(code)), 1), 4u);
  const V8Word bytecode = made_.New(layout_.bytecode_array, 96);
  made_.Set(bytecode, V8Offsets::kArrayLength, uint64_t{code.size()} << 32);
  for (size_t i = 0; i < code.size(); ++i) {
    made_.Set(bytecode, layout_.bytecode_first + i,
              static_cast<uint8_t>(code[i]));
  }
  std::string positions = V8PositionEntry(layout_, 0, V8RawPosition(7));
  positions += V8PositionEntry(
      layout_, 5, static_cast<int64_t>(V8RawPosition(9) - V8RawPosition(7)));
  made_.Set(bytecode, layout_.bytecode_positions,
            made_.NewBytes(positions).bits);
  // 16 bytes in front, then 200, 8 and 4 of an instruction each.
  MakeCode(0x20040, NewFunction(1), "\x10\xc8\x01\x08\x04", "", {});
  made_.Set(code_, layout_.code_deoptimization, bytecode.bits);
  made_.Set(code_, layout_.code_flags, uint32_t{0x70} | layout_.baseline_kind);
  const auto place = [&](uint64_t offset) {
    const auto found = Find(begin() + offset);
    return found ? found->baseline_offset : std::nullopt;
  };
  EXPECT_EQ(place(0), 7u);
  EXPECT_EQ(place(16), 7u);
  EXPECT_EQ(place(223), 7u);
  EXPECT_EQ(place(224), 9u);
  EXPECT_EQ(place(227), 9u);
  EXPECT_FALSE(place(228));
  // Another object in place of the byte code.
  made_.Set(code_, layout_.code_deoptimization,
            made_.New(layout_.script, 104).bits);
  EXPECT_FALSE(place(0));
}

// What does not hold up is not guessed at.
TEST_P(V8CodeTest, Lies) {
  const V8Word outer = NewFunction(1);
  const std::string at_once = V8PositionEntry(layout_, 0, V8RawPosition(5, 0));
  // A number of a call that is not there, and one of a function.
  MakeCode(0x20040, outer, at_once, "", {outer.bits});
  EXPECT_FALSE(Find(begin()));
  MakeCode(0x20040, outer, at_once, Inlined(V8RawPosition(1), 7), {outer.bits});
  EXPECT_FALSE(Find(begin()));
  MakeCode(0x20040, outer, at_once, Inlined(V8RawPosition(1), -1),
           {outer.bits});
  EXPECT_FALSE(Find(begin()));
  // Another object in place of a function.
  MakeCode(0x20040, outer, at_once, Inlined(V8RawPosition(1), 0),
           {made_.New(layout_.script, 104).bits});
  EXPECT_FALSE(Find(begin()));
  // A call that is inlined into itself.
  MakeCode(0x20040, outer, at_once, Inlined(V8RawPosition(1, 0), 0),
           {outer.bits});
  EXPECT_FALSE(Find(begin()));
  // No function at all.
  MakeCode(0x20040, made_.New(layout_.script, 104), "", "", {});
  EXPECT_FALSE(Find(begin()));
}

INSTANTIATE_TEST_SUITE_P(Versions, V8CodeTest,
                         testing::Range(size_t{0}, KnownV8Layouts().size()));

}  // namespace
}  // namespace ksym
