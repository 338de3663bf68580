// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/thread_frames.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace ksym {
namespace {

constexpr uint64_t kMemoryBegin = 0x10000;
constexpr uint64_t kThread = 0x10000;  // pthread_self()
constexpr uint64_t kState = 0x10100;   // PyThreadState
constexpr uint64_t kCodeType = 0x10400;
constexpr uint64_t kFrameType = 0x10500;
constexpr uint64_t kCodes = 0x11000;   // 512 bytes each
constexpr uint64_t kFrames = 0x14000;  // 128 bytes each
constexpr uint64_t kLinks = 0x18000;   // _PyCFrame

// A process with a thread whose state a variable beside the thread leads to.
class ThreadFramesTest : public testing::Test {
 protected:
  void Use(uint8_t minor) {
    interpreter_.layout =
        *CpythonLayoutOf({.major = 3, .minor = minor, .micro = 0});
    interpreter_.threads[0] = {.kind = CpythonThreadPlace::Kind::kNearThread,
                               .address = {},
                               .distance = 8};
    interpreter_.code_type = {kCodeType};
    interpreter_.frame_type = ElfAddress{kFrameType};
    interpreter_.frame_word = {.below_cfa = 16, .offset = 24};
    Set(kThread + 8, kState);
    Set(kState + layout().thread_id, kThread);
  }
  const CpythonLayout& layout() const { return interpreter_.layout; }

  template <typename T>
  void Set(uint64_t address, T value) {
    std::memcpy(memory_.data() + (address - kMemoryBegin), &value,
                sizeof(value));
  }
  static uint64_t FrameAt(uint64_t number) { return kFrames + 128 * number; }
  static Address CodeAt(uint64_t number) { return {kCodes + 512 * number}; }

  // A frame of the code with that number, at its instruction 5.
  void PutFrame(uint64_t number, uint64_t code, uint64_t previous) {
    const uint64_t frame = FrameAt(number);
    const uint64_t at = CodeAt(code).value;
    Set(at + CpythonOffsets::kType, kCodeType);
    Set(frame + layout().frame_code, at);
    Set(frame + layout().frame_previous, previous);
    if (layout().runs == CpythonLayout::Runs::kEach) {
      Set(frame + CpythonOffsets::kType, kFrameType);
      Set(frame + layout().frame_instruction, uint32_t{10});  // bytes
      return;
    }
    Set(at + layout().code_size, uint64_t{100});
    Set(at + layout().code_first_traceable, uint32_t{2});
    Set(frame + layout().frame_instruction, at + layout().code_units + 10);
  }
  // The frame of a call that lies on the C stack.
  void PutShim(uint64_t number, uint64_t previous) {
    Set(FrameAt(number) + layout().frame_previous, previous);
    Set(FrameAt(number) + layout().frame_owner, layout().shim_owner);
  }

  std::optional<CpythonFrames> Read() {
    PieceMemory memory;
    memory.Add({kMemoryBegin}, std::as_bytes(std::span(memory_)));
    return ReadCpythonFrames(memory, interpreter_, {.pointer = {kThread}});
  }

  CpythonInterpreter interpreter_;
  std::string memory_ = std::string(0x10000, '\0');
};

using CodesOfRun = std::vector<CpythonFrame>;

// 3.13: two runs, each before a frame on the C stack, which is its anchor.
TEST_F(ThreadFramesTest, RunsUpToShims) {
  Use(13);
  Set(kState + layout().thread_frame, FrameAt(0));
  PutFrame(0, 0, FrameAt(1));
  PutFrame(1, 1, FrameAt(2));
  PutShim(2, FrameAt(3));
  PutFrame(3, 0, FrameAt(4));
  PutShim(4, 0);
  const auto frames = Read();
  ASSERT_TRUE(frames);
  EXPECT_FALSE(frames->is_cut);
  ASSERT_EQ(frames->runs.size(), 2u);
  EXPECT_EQ(frames->runs[0].frames,
            (CodesOfRun{{CodeAt(0), 5}, {CodeAt(1), 5}}));
  EXPECT_EQ(frames->runs[0].anchor, FrameAt(2));
  EXPECT_EQ(frames->runs[1].frames, (CodesOfRun{{CodeAt(0), 5}}));
  EXPECT_EQ(frames->runs[1].anchor, FrameAt(4));
  EXPECT_FALSE(frames->runs[0].is_torn || frames->runs[1].is_torn);
}

// One interpreter's frames inside another's, as the stack has them.
TEST_F(ThreadFramesTest, OneInterpreterInsideAnother) {
  constexpr uint64_t kBound = 0x10300;         // PyThreadState
  constexpr uint64_t kInterpreters = 0x10600;  // the list
  Use(13);
  Set(kState + layout().thread_frame, FrameAt(0));
  PutFrame(0, 0, FrameAt(1));
  PutShim(1, 0);
  interpreter_.threads[1] = interpreter_.threads[0];
  interpreter_.threads[1].distance = 16;
  Set(kThread + 16, kBound);
  Set(kBound + layout().thread_id, kThread);
  Set(kBound + layout().thread_frame, FrameAt(2));
  PutFrame(2, 1, FrameAt(3));
  PutShim(3, 0);
  interpreter_.lists = {.newest = {kInterpreters},
                        .interpreter_next = 0,
                        .interpreter_threads = 8};
  Set(kInterpreters, kInterpreters + 16);
  Set(kInterpreters + 16, kInterpreters + 32);
  const auto frames = Read();
  ASSERT_TRUE(frames);
  ASSERT_EQ(frames->runs.size(), 2u);
  EXPECT_EQ(frames->runs[0].frames, (CodesOfRun{{CodeAt(0), 5}}));
  EXPECT_EQ(frames->runs[0].anchor, FrameAt(1));
  EXPECT_EQ(frames->runs[1].frames, (CodesOfRun{{CodeAt(1), 5}}));
  EXPECT_EQ(frames->runs[1].anchor, FrameAt(3));
  EXPECT_FALSE(frames->is_cut);
}

// 3.11: a chain of calls, each of which says where its run begins.
TEST_F(ThreadFramesTest, RunsOfAChain) {
  Use(11);
  Set(kState + layout().thread_frame, kLinks);
  Set(kLinks + layout().cframe_frame, FrameAt(0));
  Set(kLinks + layout().cframe_previous, kLinks + 64);
  Set(kLinks + 64 + layout().cframe_frame, FrameAt(2));
  PutFrame(0, 0, FrameAt(1));
  PutFrame(1, 1, FrameAt(2));
  Set(FrameAt(1) + layout().frame_is_entry, uint8_t{1});
  PutFrame(2, 2, 0);
  Set(FrameAt(2) + layout().frame_is_entry, uint8_t{1});
  const auto frames = Read();
  ASSERT_TRUE(frames);
  ASSERT_EQ(frames->runs.size(), 2u);
  EXPECT_EQ(frames->runs[0].frames,
            (CodesOfRun{{CodeAt(0), 5}, {CodeAt(1), 5}}));
  EXPECT_EQ(frames->runs[0].anchor, kLinks);
  EXPECT_FALSE(frames->runs[0].is_torn);
  EXPECT_EQ(frames->runs[1].frames, (CodesOfRun{{CodeAt(2), 5}}));
  EXPECT_EQ(frames->runs[1].anchor, kLinks + 64);
  // The first run does not come from where the second one is.
  Set(FrameAt(1) + layout().frame_previous, FrameAt(3));
  const auto torn = Read();
  ASSERT_EQ(torn->runs.size(), 2u);
  EXPECT_TRUE(torn->runs[0].is_torn);
  EXPECT_FALSE(torn->runs[1].is_torn);
  // It comes from somewhere, but there is no second one.
  Set(kLinks + layout().cframe_previous, uint64_t{0});
  const auto ended = Read();
  ASSERT_EQ(ended->runs.size(), 1u);
  EXPECT_TRUE(ended->runs[0].is_torn);
}

// 3.12: the call before says what the innermost call's run comes from. A call
// that begins has put nothing into its _PyCFrame yet.
TEST_F(ThreadFramesTest, RunsComeFromTheCallBefore) {
  Use(12);
  Set(kState + layout().thread_frame, kLinks);
  Set(kLinks + layout().cframe_frame, FrameAt(0));
  Set(kLinks + layout().cframe_previous, kLinks + 64);
  Set(kLinks + 64 + layout().cframe_frame, FrameAt(3));
  PutFrame(0, 0, FrameAt(1));
  PutFrame(1, 1, FrameAt(2));
  PutShim(2, FrameAt(3));
  PutFrame(3, 2, FrameAt(4));
  PutShim(4, 0);
  auto frames = Read();
  ASSERT_TRUE(frames);
  ASSERT_EQ(frames->runs.size(), 2u);
  EXPECT_EQ(frames->runs[0].frames,
            (CodesOfRun{{CodeAt(0), 5}, {CodeAt(1), 5}}));
  EXPECT_FALSE(frames->runs[0].is_torn || frames->runs[1].is_torn);
  // The call before is at another frame.
  for (const uint64_t at : {FrameAt(1), uint64_t{0}}) {
    Set(kLinks + 64 + layout().cframe_frame, at);
    frames = Read();
    ASSERT_EQ(frames->runs.size(), 1u);
    EXPECT_TRUE(frames->runs[0].is_torn);
  }
  // There is none, or none that can be read.
  for (const uint64_t before : {uint64_t{0}, kLinks + 4, uint64_t{1} << 40}) {
    Set(kLinks + layout().cframe_previous, before);
    frames = Read();
    ASSERT_EQ(frames->runs.size(), 1u);
    EXPECT_TRUE(frames->runs[0].is_torn);
  }
}

// With a _PyCFrame, what has not begun calls nothing; from 3.13 on what makes
// objects does, and is left out.
TEST_F(ThreadFramesTest, NothingIsCalledBeforeTheBegin) {
  for (const uint8_t minor : {uint8_t{11}, uint8_t{12}, uint8_t{13}}) {
    memory_.assign(memory_.size(), '\0');
    Use(minor);
    PutFrame(0, 0, FrameAt(1));
    PutFrame(1, 1, FrameAt(2));
    Set(FrameAt(1) + layout().frame_instruction,
        CodeAt(1).value + layout().code_units);
    PutFrame(2, 2, minor == 11 ? 0 : FrameAt(3));
    Set(kState + layout().thread_frame, minor == 13 ? FrameAt(0) : kLinks);
    if (minor != 13) {
      Set(kLinks + layout().cframe_frame, FrameAt(0));
      Set(kLinks + layout().cframe_previous, kLinks + 64);
    }
    if (minor == 11) Set(FrameAt(2) + layout().frame_is_entry, uint8_t{1});
    if (minor != 11) PutShim(3, 0);
    const auto frames = Read();
    ASSERT_TRUE(frames);
    ASSERT_EQ(frames->runs.size(), 1u);
    EXPECT_EQ(frames->runs[0].is_torn, minor != 13);
    if (minor == 13) {
      EXPECT_EQ(frames->runs[0].frames,
                (CodesOfRun{{CodeAt(0), 5}, {CodeAt(2), 5}}));
    }
  }
}

// 3.9: each frame is an object and a run, whose word its native frame has.
TEST_F(ThreadFramesTest, ObjectsAreRuns) {
  Use(9);
  Set(kState + layout().thread_frame, FrameAt(0));
  PutFrame(0, 0, FrameAt(1));
  PutFrame(1, 1, 0);
  const auto frames = Read();
  ASSERT_TRUE(frames);
  ASSERT_EQ(frames->runs.size(), 2u);
  EXPECT_EQ(frames->runs[0].frames, (CodesOfRun{{CodeAt(0), 5}}));
  EXPECT_EQ(frames->runs[0].anchor, FrameAt(0) + 24);
  EXPECT_EQ(frames->runs[1].frames, (CodesOfRun{{CodeAt(1), 5}}));
}

// What is no frame tears its run, and what has not begun is left out.
TEST_F(ThreadFramesTest, Refuses) {
  Use(13);
  Set(kState + layout().thread_frame, FrameAt(0));
  PutFrame(0, 0, FrameAt(1));
  Set(FrameAt(0) + layout().frame_instruction,
      CodeAt(0).value + layout().code_units);
  PutFrame(1, 1, FrameAt(2));
  PutShim(2, 0);
  auto frames = Read();
  ASSERT_TRUE(frames);
  ASSERT_EQ(frames->runs.size(), 1u);
  EXPECT_EQ(frames->runs[0].frames, (CodesOfRun{{CodeAt(1), 5}}));
  EXPECT_FALSE(frames->runs[0].is_torn);
  // Another object is where the code was.
  Set(CodeAt(1).value + CpythonOffsets::kType, kFrameType);
  frames = Read();
  ASSERT_EQ(frames->runs.size(), 1u);
  EXPECT_TRUE(frames->runs[0].is_torn);
  // Another thread's state.
  Set(kState + layout().thread_id, kThread + 1);
  EXPECT_FALSE(Read());
}

TEST_F(ThreadFramesTest, EndsLoops) {
  Use(13);
  Set(kState + layout().thread_frame, FrameAt(0));
  PutShim(0, FrameAt(0));
  EXPECT_TRUE(Read()->is_cut);
  PutFrame(1, 0, FrameAt(1));
  Set(kState + layout().thread_frame, FrameAt(1));
  const auto frames = Read();
  EXPECT_TRUE(frames->is_cut);
  ASSERT_EQ(frames->runs.size(), 1u);
  EXPECT_TRUE(frames->runs[0].is_torn);
  EXPECT_LE(frames->runs[0].frames.size(), kMaxCpythonItems);
}

}  // namespace
}  // namespace ksym
