// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/javascript_names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/runtime/javascript_frames.h"
#include "tests/ksym/runtime/made_v8_heap.h"

namespace profd {
namespace {

using ksym::MadeV8Heap;
using ksym::V8Word;

constexpr uint64_t kCodeSpace = 0x7f0000000000;

// Node 20's heap with a script of three lines and a function on the second.
class JavaScriptNamesTest : public testing::Test {
 protected:
  JavaScriptNamesTest() {
    made_.PutAt(kCodeSpace, 0x10000);
    script_ = made_.NewScript(7, "file:///srv/server.js", "a\nbcd\nefg\n");
    function_ = made_.NewFunction(made_.NewText("handle"), script_, 3);
    bytecode_ = made_.New(layout_.bytecode_array, 100);
    made_.Set(
        bytecode_, layout_.bytecode_positions,
        made_
            .NewBytes(V8PositionEntry(layout_, 0, ksym::V8RawPosition(3)) +
                      V8PositionEntry(layout_, 9, 5 * 2))
            .bits);
  }

  JavaScriptCode Sampled(uint64_t id, V8Word shared) const {
    const ksym::PieceMemory memory = made_.memory();
    const auto identity =
        ksym::ReadV8FunctionIdentity(ksym::V8Heap(memory, layout_), shared);
    JavaScriptCode code;
    code.id = id;
    code.process = process_;
    code.layout = &layout_;
    code.shared = shared;
    if (identity) code.identity = *identity;
    return code;
  }
  JavaScriptCode Interpreted(uint64_t id) const {
    JavaScriptCode code = Sampled(id, function_);
    code.bytecode = bytecode_;
    return code;
  }
  void Read() {
    const ksym::PieceMemory memory = made_.memory();
    javascript_.Read(
        [&](uint32_t pid, JavaScriptNames::Freshness) -> const ksym::Memory& {
          EXPECT_EQ(pid, process_.pid);
          return memory;
        },
        [] { return false; });
  }

  const ksym::V8Layout& layout_ = ksym::KnownV8Layouts()[1];
  const ksym::ProcessId process_ = {.pid = 12, .exec_count = 1, .start_ns = 5};
  MadeV8Heap made_ = MadeV8Heap(layout_);
  V8Word script_;
  V8Word function_;
  V8Word bytecode_;
  RuntimeNames names_;
  JavaScriptNames javascript_ = JavaScriptNames(names_);
};

// A frame has its number before its name is known.
TEST_F(JavaScriptNamesTest, Interpreted) {
  const uint32_t skipped = layout_.bytecode_first - 1u;
  javascript_.Add(Interpreted(1));
  const RuntimeFrameId first = javascript_.FrameOf(1, skipped);
  const RuntimeFrameId second = javascript_.FrameOf(1, skipped + 9);
  EXPECT_NE(first, second);
  EXPECT_EQ(javascript_.FrameOf(1, skipped), first);
  EXPECT_EQ(javascript_.Get(first)->name, "");
  EXPECT_EQ(javascript_.statistics().frames_unnamed, 1u);
  EXPECT_TRUE(javascript_.HasWaiting());
  Read();
  EXPECT_FALSE(javascript_.HasWaiting());
  const auto frame = javascript_.Get(first);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->name, "handle");
  EXPECT_EQ(frame->file, "/srv/server.js");
  EXPECT_EQ(frame->line, 2u);
  EXPECT_EQ(javascript_.Get(second)->line, 3u);
  EXPECT_EQ(javascript_.Get(second + 100), std::nullopt);
}

// Functions that are inlined have frames of their own.
TEST_F(JavaScriptNamesTest, Inlined) {
  const V8Word inner = made_.NewFunction(made_.NewText("inner"), script_, 4);
  made_.SetAt(kCodeSpace + 64, made_.MapOf(layout_.instruction_stream).bits);
  const V8Word code = made_.New(layout_.code, 96);
  made_.SetAt(kCodeSpace + 72, code.bits);
  const uint64_t begin = kCodeSpace + 64 + layout_.code_header;
  std::string inlined(16, '\0');
  const uint64_t place = ksym::V8RawPosition(3);
  std::memcpy(inlined.data(), &place, sizeof(place));
  std::vector<uint64_t> data(10);
  data[layout_.deoptimization_literals] =
      made_.NewArray(layout_.fixed_array, {inner.bits}).bits;
  data[layout_.deoptimization_shared] = function_.bits;
  data[layout_.deoptimization_positions] = made_.NewBytes(inlined).bits;
  made_.Set(code, layout_.code_deoptimization,
            made_.NewArray(layout_.fixed_array, data).bits);
  made_.Set(
      code, layout_.code_positions,
      made_
          .NewBytes(V8PositionEntry(
              layout_, 0, static_cast<int64_t>(ksym::V8RawPosition(8, 0))))
          .bits);
  made_.Set(code, layout_.code_size, uint32_t{0x100});
  made_.Set(code, layout_.code_start, begin);
  JavaScriptCode sampled = Sampled(1, function_);
  sampled.pc = {begin + 5};
  javascript_.Add(sampled);
  Read();
  const auto leaf = javascript_.Get(javascript_.FrameOf(1, 0));
  ASSERT_TRUE(leaf);
  EXPECT_EQ(leaf->name, "inner");
  EXPECT_EQ(leaf->line, 3u);
  const RuntimeFrame& caller = names_.Get(leaf->caller);
  EXPECT_EQ(caller.name, "handle");
  EXPECT_EQ(caller.line, 2u);
  EXPECT_EQ(caller.caller, 0u);
  // The code of another function has taken its place.
  JavaScriptCode other = Sampled(2, inner);
  other.pc = sampled.pc;
  javascript_.Add(other);
  Read();
  EXPECT_EQ(javascript_.Get(javascript_.FrameOf(2, 0))->name, "");
}

// Another function where the sampled one was has no name, and is tried again a
// few times only.
TEST_F(JavaScriptNamesTest, Moved) {
  const JavaScriptCode sampled = Interpreted(1);
  made_.Set(function_, layout_.shared_literal_id, uint32_t{9});
  for (uint32_t i = 1; i <= JavaScriptNames::kMaxTries; ++i) {
    javascript_.Add(sampled);
    Read();
    EXPECT_EQ(javascript_.statistics().codes_unread, i);
    EXPECT_EQ(javascript_.TakeDropped().empty(),
              i == JavaScriptNames::kMaxTries);
  }
  javascript_.Add(sampled);
  EXPECT_FALSE(javascript_.HasWaiting());
  EXPECT_EQ(javascript_.Get(javascript_.FrameOf(1, 0))->name, "");
}

// What names the function is not what it was when it ran.
TEST_F(JavaScriptNamesTest, Witness) {
  function_ = made_.NewFunction(made_.NewText("handleAllRequests"), script_, 3);
  JavaScriptCode sampled = Interpreted(1);
  V8Witness& witness = sampled.witness.emplace();
  const ksym::PieceMemory memory = made_.memory();
  const V8Word name = {sampled.identity.name};
  ASSERT_TRUE(memory.Read(name.object(),
                          std::as_writable_bytes(std::span(witness.named))));
  javascript_.Add(sampled);
  made_.Fill(name, 16, "xandle");
  Read();
  EXPECT_EQ(javascript_.statistics().codes_unread, 1u);
  made_.Fill(name, 16, "handle");
  javascript_.Add(sampled);
  Read();
  EXPECT_EQ(javascript_.Get(javascript_.FrameOf(1, 0))->name,
            "handleAllRequests");
}

TEST_F(JavaScriptNamesTest, Forgets) {
  javascript_.Add(Interpreted(1));
  Read();
  EXPECT_GT(javascript_.statistics().bytes, 0u);
  const RuntimeFrameId frame = javascript_.FrameOf(1, 0);
  javascript_.Forget(process_);
  EXPECT_EQ(javascript_.statistics().bytes, 0u);
  EXPECT_EQ(javascript_.Get(frame)->name, "");
}

// Names of a process that makes functions without end do not grow.
TEST_F(JavaScriptNamesTest, Bounds) {
  for (uint64_t id = 1; id <= 3 * JavaScriptNames::kMaxCodes; ++id) {
    javascript_.Add(Interpreted(id));
    if (id % 8192 == 0) {
      Read();
      javascript_.EndInterval();
      javascript_.TakeDropped();
    }
  }
  EXPECT_LE(javascript_.statistics().bytes, JavaScriptNames::kMaxBytes);
  EXPECT_GT(javascript_.statistics().codes_refused, JavaScriptNames::kMaxCodes);
}

// A copied stack: its words lead to objects that the process has now.
class JavaScriptFramesTest : public JavaScriptNamesTest {
 protected:
  static constexpr uint64_t kStack = 0x7fff00001000;

  JavaScriptFramesTest() {
    object_ = made_.New(layout_.first_function, 64);
    made_.Set(object_, layout_.function_shared, function_.bits);
    made_.Set(function_, layout_.shared_data, bytecode_.bits);
    made_.PutAt(kStack, 0x100);
    Put(V8FrameAt(ksym::V8Frame::kContext), script_.bits);
    Put(V8FrameAt(ksym::V8Frame::kFunction), object_.bits);
    Put(V8FrameAt(ksym::V8Frame::kBytecode), bytecode_.bits);
    Put(V8FrameAt(ksym::V8Frame::kOffset), MadeV8Heap::Smi(53));
  }
  static uint64_t V8FrameAt(uint64_t below) { return kStack + 0x80 - below; }
  void Put(uint64_t address, uint64_t word) { made_.SetAt(address, word); }

  std::vector<JavaScriptFrame> Find(bool is_in_file) const {
    const ksym::PieceMemory memory = made_.memory();
    const std::vector<uint64_t> stack_pointers = {kStack, kStack + 0x90};
    const std::vector<uint64_t> frames = {0x1000, 0x2000};
    return FindJavaScriptFrames(
        {.stack_pointers = stack_pointers,
         .memory = memory,
         .rowless = {{.index = 0, .is_in_file = is_in_file}}},
        frames, {.memory = memory, .layout = layout_, .id = process_});
  }

  V8Word object_;  // JSFunction
};

TEST_F(JavaScriptFramesTest, Finds) {
  const auto interpreted = Find(true);
  ASSERT_EQ(interpreted.size(), 1u);
  EXPECT_EQ(interpreted[0].native, 0u);
  EXPECT_EQ(interpreted[0].index, 53u);
  EXPECT_EQ(interpreted[0].code.shared.bits, function_.bits);
  ASSERT_TRUE(interpreted[0].code.bytecode);
  const auto compiled = Find(false);
  ASSERT_EQ(compiled.size(), 1u);
  EXPECT_FALSE(compiled[0].code.bytecode);
  EXPECT_EQ(compiled[0].code.pc.value, 0x1000u);
  EXPECT_NE(compiled[0].code.id, interpreted[0].code.id);
}

// Code of the file without byte code is V8's own; a frame of another kind has a
// number in place of a context.
TEST_F(JavaScriptFramesTest, NativeCode) {
  Put(V8FrameAt(ksym::V8Frame::kBytecode), script_.bits);
  EXPECT_TRUE(Find(true).empty());
  Put(V8FrameAt(ksym::V8Frame::kBytecode), bytecode_.bits);
  Put(V8FrameAt(ksym::V8Frame::kOffset), 53);
  EXPECT_TRUE(Find(true).empty());
  Put(V8FrameAt(ksym::V8Frame::kContext), 40);
  EXPECT_TRUE(Find(false).empty());
}

// A function that has moved leaves a frame that will have no name.
TEST_F(JavaScriptFramesTest, Moved) {
  made_.Set(function_, layout_.shared_data,
            made_.New(layout_.bytecode_array, 100).bits);
  auto found = Find(true);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code.shared.bits, 0u);
  made_.Set(object_, 0, made_.MapOf(layout_.script).bits);
  found = Find(false);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code.shared.bits, 0u);
}

}  // namespace
}  // namespace profd
