// SPDX-License-Identifier: Apache-2.0
// Walks through the code of a JVM whose memory is made here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "ksym/runtime/hotspot/code_walk.h"
#include "ksym/runtime/memory.h"
#include "ksym/unwind/stack_walk.h"

namespace ksym {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using std::string_view_literals::operator""sv;

constexpr uint64_t kHeap = 0x100000;
constexpr size_t kHeapBytes = 0x8000;
constexpr uint8_t kShift = 7;
constexpr uint64_t kSegments = 0x200000;
constexpr size_t kSegmentCount = kHeapBytes >> kShift;
constexpr uint64_t kDataAt = 0x300000;
constexpr size_t kDataBytes = 0x1000;
constexpr uint64_t kStack = 0x7ffc00000000;
constexpr size_t kStackWords = 128;
constexpr uint64_t kNoReturn = 0;

HotspotLayout MadeLayout() {
  HotspotLayout layout;
  layout.block_bytes = 16;
  layout.blob_name = 0;
  layout.blob_frame_size = 8;
  layout.blob_frame_complete = 12;
  layout.blob_code_begin = 16;
  layout.blob_code_end = 24;
  layout.nmethod_compile_id = 32;
  layout.nmethod_deopt = 40;
  layout.nmethod_deopt_mh = 48;
  layout.nmethod_original_pc = 56;
  layout.method_const_method = 8;
  layout.const_method_bytes = 48;
  layout.const_method_code_size = 32;
  layout.interpreter_bcp = 64;
  return layout;
}

class HotspotWalkTest : public testing::Test {
 protected:
  struct Blob {
    uint64_t address = 0;
    uint64_t code = 0;
  };

  HotspotWalkTest() {
    memory_.Add({kHeap}, heap_);
    memory_.Add({kSegments}, segments_);
    memory_.Add({kDataAt}, data_);
    std::ranges::fill(segments_, std::byte{0xff});
  }

  // Sets a number in one of the three parts of memory.
  template <typename T>
  void Set(uint64_t address, T value) {
    std::span<std::byte> part = heap_;
    uint64_t begin = kHeap;
    if (address >= kSegments) {
      part = segments_;
      begin = kSegments;
    }
    if (address >= kDataAt) {
      part = data_;
      begin = kDataAt;
    }
    std::memcpy(part.subspan(address - begin, sizeof(value)).data(), &value,
                sizeof(value));
  }
  uint64_t NewData(size_t bytes) {
    const uint64_t at = next_data_;
    next_data_ += (bytes + 7) / 8 * 8;
    return at;
  }

  // Code behind a head of 512 bytes; `words` and `complete` are of its frame.
  Blob NewBlob(std::string_view name, int32_t words, int32_t complete = 0,
               size_t code_bytes = 600) {
    const uint64_t segment = next_segment_;
    const size_t segments = (16 + 512 + code_bytes + 127) >> kShift;
    for (size_t i = 0; i < segments; ++i) {
      Set(kSegments + segment + i, static_cast<uint8_t>(i));
    }
    next_segment_ += segments;
    const uint64_t address = kHeap + (segment << kShift) + 16;
    const uint64_t text = NewData(name.size() + 1);
    for (size_t i = 0; i < name.size(); ++i) Set(text + i, name[i]);
    Set(address, text);
    Set(address + 8, words);
    Set(address + 12, complete);
    Set(address + 16, address + 512);
    Set(address + 24, address + 512 + code_bytes);
    return {.address = address, .code = address + 512};
  }
  Blob NewCompiled(int32_t words, uint32_t compile_id, int32_t complete = 0) {
    const Blob blob = NewBlob("nmethod", words, complete);
    Set(blob.address + 32, compile_id);
    return blob;
  }
  void SetCode(uint64_t address, std::string_view bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) Set(address + i, bytes[i]);
  }
  // A method with so many bytes of bytecodes.
  struct Method {
    uint64_t address = 0;
    uint64_t code = 0;
  };
  Method NewMethod(uint16_t bytecodes) {
    const Method method = {.address = NewData(16), .code = NewData(256)};
    Set(method.address + 8, method.code);
    Set(method.code + 32, bytecodes);
    return method;
  }

  void Word(size_t index, uint64_t value) { words_.at(index) = value; }
  void Register(size_t number, uint64_t value) {
    registers_.at(number) = value;
  }
  static uint64_t At(size_t word) { return kStack + 8 * word; }

  // From a caller's frame on, as that of a thread that sleeps in native code:
  // the return address and what it has for a frame pointer.
  StackEnd WalkFrom(uint64_t ip, uint64_t fp) {
    // A native function without a frame of its own that was just called.
    native_ = true;
    Word(0, ip);
    return Walk(kNative, fp);
  }
  // From where the CPU is.
  StackEnd Walk(uint64_t ip, uint64_t fp) {
    Register(static_cast<size_t>(kStackPointerRegister), kStack);
    Register(static_cast<size_t>(kFramePointerRegister), fp);
    const StackPart part = {{kStack}, std::as_bytes(std::span(words_))};
    const StackCopy copy = {{ip}, registers_, {&part, 1}};
    HotspotCode code(MadeLayout(), {{.begin = {kHeap},
                                     .end = {kHeap + kHeapBytes},
                                     .segments = {kSegments},
                                     .segment_shift = kShift}});
    HotspotSteps steps(code, memory_, thread_);
    WalkStack(
        copy, 100,
        {.find = [this](Address at) { return Find(at); }, .steps = &steps},
        stack_);
    frames_ = steps.frames();
    return stack_.end;
  }

  void set_thread(HotspotThread thread) { thread_ = thread; }

  const std::vector<HotspotFrame>& frames() const { return frames_; }
  const std::vector<uint64_t>& stack_pointers() const {
    return stack_.stack_pointers;
  }

 private:
  static constexpr uint64_t kNative = 0x401000;

  CodeAt Find(Address at) {
    if (native_ && at.value == kNative) {
      table_.size = 16;
      table_.rows = {
          {0, 1, 0, MakeRule(CfaKind::kStackPointer, FramePointerKind::kSame)}};
      return {CodeAt::Kind::kTable, &table_, kNative};
    }
    if (at.value - kHeap < kHeapBytes) return {CodeAt::Kind::kNoTable};
    return {};
  }

  std::array<std::byte, kHeapBytes> heap_ = {};
  std::array<std::byte, kSegmentCount> segments_ = {};
  std::array<std::byte, kDataBytes> data_ = {};
  PieceMemory memory_;
  uint64_t next_segment_ = 0;
  uint64_t next_data_ = kDataAt;
  std::array<uint64_t, kStackWords> words_ = {};
  std::array<uint64_t, kMachineRegisters> registers_ = {};
  UnwindTable table_;
  bool native_ = false;
  HotspotThread thread_ = HotspotThread::kIsThere;
  WalkedStack stack_;
  std::vector<HotspotFrame> frames_;
};

// Each frame is as large as its code says; the frame pointer is of no use.
TEST_F(HotspotWalkTest, LeavesCompiledCodeByItsSize) {
  const Blob inner = NewCompiled(4, 0x12345);
  const Blob outer = NewCompiled(6, 7);
  Word(1 + 3, outer.code + 0x40);
  Word(1 + 4 + 5, kNoReturn);
  EXPECT_EQ(WalkFrom(inner.code + 0x20, 0x1234), StackEnd::kOutermost);
  ASSERT_EQ(frames().size(), 2u);
  EXPECT_EQ(frames()[0].number, 1u);
  EXPECT_EQ(frames()[0].kind, HotspotFrame::Kind::kCompiled);
  EXPECT_EQ(frames()[0].code.value, inner.address);
  EXPECT_EQ(frames()[0].tag, 0x2345);
  EXPECT_EQ(frames()[0].place, 0x1fu);
  EXPECT_EQ(frames()[1].code.value, outer.address);
  EXPECT_EQ(frames()[1].place, 0x3fu);
  EXPECT_THAT(stack_pointers(), ElementsAre(At(0), At(1), At(5)));
}

// A blob of more than 254 segments takes two hops to its begin.
TEST_F(HotspotWalkTest, FindsTheBeginOfLargeCode) {
  const Blob blob = NewBlob("nmethod", 2, 0, 0x6000);
  Word(1 + 1, kNoReturn);
  EXPECT_EQ(WalkFrom(blob.code + 0x5f00, 0), StackEnd::kOutermost);
  ASSERT_EQ(frames().size(), 1u);
  EXPECT_EQ(frames()[0].place, 0x5effu);
}

TEST_F(HotspotWalkTest, FollowsInterpretedFrames) {
  const Blob interpreter = NewBlob("Interpreter", 0, -1);
  const Blob compiled = NewCompiled(4, 9);
  const Method inner = NewMethod(100);
  const Method outer = NewMethod(50);
  // The inner frame's words: sender, method, bytecode.
  Word(20, At(40));                   // the caller's frame pointer
  Word(21, interpreter.code + 0x80);  // where it returns to
  Word(20 - 1, At(22));               // the caller's stack pointer
  Word(20 - 3, inner.address);
  Word(20 - 8, inner.code + 48 + 77);
  Word(40, 0x99);
  Word(41, compiled.code + 0x10);
  Word(40 - 1, At(45));  // three words of arguments
  Word(40 - 3, outer.address);
  Word(40 - 8, outer.code + 48);
  Word(45 + 3, kNoReturn);
  EXPECT_EQ(WalkFrom(interpreter.code + 0x30, At(20)), StackEnd::kOutermost);
  ASSERT_EQ(frames().size(), 3u);
  EXPECT_EQ(frames()[0].kind, HotspotFrame::Kind::kInterpreted);
  EXPECT_EQ(frames()[0].code.value, inner.address);
  EXPECT_EQ(frames()[0].tag, static_cast<uint16_t>(inner.code >> 3));
  EXPECT_EQ(frames()[0].place, 77u);
  EXPECT_EQ(frames()[1].code.value, outer.address);
  EXPECT_EQ(frames()[1].place, 0u);
  EXPECT_EQ(frames()[2].kind, HotspotFrame::Kind::kCompiled);
  EXPECT_EQ(stack_pointers().back(), At(45));
}

// They have no bytecodes: nothing stands there, or where these would be.
TEST_F(HotspotWalkTest, KnowsInterpretedNativeMethods) {
  const Blob interpreter = NewBlob("Interpreter", 0, -1);
  const Method native = NewMethod(0);
  Word(21, kNoReturn);
  Word(20 - 1, At(22));
  Word(20 - 3, native.address);
  for (const uint64_t bytecode : {uint64_t{0}, native.code + 48}) {
    Word(20 - 8, bytecode);
    EXPECT_EQ(WalkFrom(interpreter.code + 0x30, At(20)), StackEnd::kOutermost);
    ASSERT_EQ(frames().size(), 1u);
    EXPECT_EQ(frames()[0].code.value, native.address);
    EXPECT_EQ(frames()[0].place, 0u);
  }
}

TEST_F(HotspotWalkTest, EndsWhereTheInterpreterHasNoMethod) {
  const Blob interpreter = NewBlob("Interpreter", 0, -1);
  const Method method = NewMethod(10);
  Word(21, kNoReturn);
  Word(20 - 3, method.address);
  Word(20 - 8, method.code + 48 + 10);  // behind its last bytecode
  EXPECT_EQ(WalkFrom(interpreter.code + 0x30, At(20)), StackEnd::kNoTable);
  Word(20 - 8, method.code + 48 + 9);
  Word(20 - 3, 0x77);
  EXPECT_EQ(WalkFrom(interpreter.code + 0x30, At(20)), StackEnd::kNoTable);
  // No frame pointer.
  EXPECT_EQ(WalkFrom(interpreter.code + 0x30, At(20) + 1), StackEnd::kNoTable);
  EXPECT_THAT(frames(), IsEmpty());
}

// As the compilers begin and end their code, how much of the frame is there.
TEST_F(HotspotWalkTest, LeavesCodeInTheMiddleOfWhatMakesAFrame) {
  struct Case {
    std::string_view before;  // of the CPU's place
    std::string_view at;
    size_t words;  // up to the return address and with it
    bool has_fp;   // the caller's frame pointer is in the frame
  };
  constexpr uint64_t kPlace = 0x100;
  for (const Case& c : {
           Case{"", "\x5d\xc3"sv, 2, true},
           Case{"\x5d"sv, "\xc3"sv, 1, false},
           Case{"\x5d"sv, "\x49\x3b\xa7"sv, 1, false},
           Case{"\x49\x3b\xa7\x00\x00\x00\x00"sv, "\x0f\x87"sv, 1, false},
           Case{"\x5d"sv, "\x85\x05"sv, 1, false},
           Case{"\x5d\x4d\x8b\x57\x70"sv, "\x41\x85\x02"sv, 1, false},
           Case{"\x55"sv, "\x48\x83\xec"sv, 2, true},
           Case{"", "\x48\x89\x6c\x24\x10"sv, 5, false},
           Case{"", "\x90"sv, 1, false},
       }) {
    // The whole frame is there behind so many bytes.
    const Blob blob = NewCompiled(5, 3, 0x180);
    SetCode(blob.code + kPlace - c.before.size(), c.before);
    SetCode(blob.code + kPlace, c.at);
    for (size_t i = 0; i < 8; ++i) Word(i, 0x5555);
    Word(c.words - 1, kNoReturn);
    EXPECT_EQ(Walk(blob.code + kPlace, 0x1234), StackEnd::kOutermost)
        << testing::PrintToString(c.at);
    EXPECT_EQ(frames().size(), 1u);
  }
}

// Its return address was replaced; the frame has the one of before.
TEST_F(HotspotWalkTest, UndoesDeoptimization) {
  const Blob blob = NewCompiled(8, 3);
  const uint64_t elsewhere = blob.code + 0x200;
  Set(blob.address + 40, elsewhere);
  Set(blob.address + 56, int32_t{16});
  Word(1 + 2, blob.code + 0x44);
  Word(1 + 7, kNoReturn);
  EXPECT_EQ(WalkFrom(elsewhere, 0), StackEnd::kOutermost);
  ASSERT_EQ(frames().size(), 1u);
  EXPECT_EQ(frames()[0].place, 0x43u);
  // What is there leads out of the code.
  Word(1 + 2, blob.code - 1);
  EXPECT_EQ(WalkFrom(elsewhere, 0), StackEnd::kOutermost);
  EXPECT_EQ(frames()[0].place, 0x1ffu);
}

// Where the thread has gone on, other code may be there by now: it has to call
// where the frame is.
TEST_F(HotspotWalkTest, LeavesCodeOfOthersWhereItCalls) {
  constexpr uint64_t kPlace = 0x40;
  struct Case {
    std::string_view before;
    bool calls;
  };
  for (const Case& c : {
           Case{"\xe8\x01\x02\x03\x04"sv, true},          // call n
           Case{"\xff\xd0"sv, true},                      // call *%rax
           Case{"\x41\xff\xd3"sv, true},                  // call *%r11
           Case{"\xff\x13"sv, true},                      // call *(%rbx)
           Case{"\xff\x50\x48"sv, true},                  // call *n(%rax)
           Case{"\xff\x90\x00\x01\x00\x00"sv, true},      // the same
           Case{"\xff\x15\x00\x01\x00\x00"sv, true},      // call *n(%rip)
           Case{"\xff\x14\xc8"sv, true},                  // with an index
           Case{"\xff\x54\xc8\x10"sv, true},              // and a distance
           Case{"\xff\x94\xc8\x00\x01\x00\x00"sv, true},  // the same
           Case{""sv, false}, Case{"\xe9\x01\x02\x03\x04"sv, false},  // jmp n
           Case{"\xff\xe0"sv, false},                  // jmp *%rax
           Case{"\xff\x50"sv, false},                  // a part of a call
           Case{"\xff\xd0\x90"sv, false},              // a call before
           Case{"\xe8\x01\x02\x03\x04\x90"sv, false},  // the same
           Case{"\xff\xc0"sv, false},                  // inc %eax
       }) {
    const Blob blob = NewCompiled(4, 3);
    SetCode(blob.code + kPlace - c.before.size(), c.before);
    Word(1 + 3, kNoReturn);
    set_thread(HotspotThread::kIsThere);
    EXPECT_EQ(WalkFrom(blob.code + kPlace, 0), StackEnd::kOutermost);
    set_thread(HotspotThread::kWentOn);
    EXPECT_EQ(WalkFrom(blob.code + kPlace, 0),
              c.calls ? StackEnd::kOutermost : StackEnd::kNoTable)
        << testing::PrintToString(c.before);
  }
}

// The CPU itself may be anywhere in the code.
TEST_F(HotspotWalkTest, LeavesTheCodeThatTheCpuIsIn) {
  set_thread(HotspotThread::kWentOn);
  const Blob blob = NewCompiled(4, 3);
  Word(3, kNoReturn);
  EXPECT_EQ(Walk(blob.code + 0x40, 0), StackEnd::kOutermost);
  EXPECT_EQ(frames().size(), 1u);
}

TEST_F(HotspotWalkTest, LeavesStubs) {
  const Blob sized = NewBlob("RuntimeStub", 3);
  const Blob table = NewBlob("vtable chunks", 0);
  const Blob entry = NewBlob("StubRoutines (1)", 0, -1);
  Word(1 + 2, table.code + 1);
  Word(4, entry.code + 9);
  Word(30, 0x99);
  Word(31, kNoReturn);
  Word(1 + 1, At(30));  // saved by the stub that has a size
  EXPECT_EQ(WalkFrom(sized.code + 8, 0), StackEnd::kOutermost);
  ASSERT_EQ(frames().size(), 3u);
  for (const HotspotFrame& frame : frames()) {
    EXPECT_EQ(frame.kind, HotspotFrame::Kind::kStub);
  }
  EXPECT_THAT(stack_pointers(), ElementsAre(At(0), At(1), At(4), At(5)));
}

TEST_F(HotspotWalkTest, EndsWhereThereIsNoBlob) {
  const Blob blob = NewCompiled(4, 3);
  EXPECT_EQ(WalkFrom(kHeap + kHeapBytes - 64, 0), StackEnd::kNoTable);
  EXPECT_EQ(WalkFrom(blob.address + 8, 0), StackEnd::kNoTable);
  Set(blob.address, uint64_t{0x66});  // its name
  EXPECT_EQ(WalkFrom(blob.code + 8, 0), StackEnd::kNoTable);
  EXPECT_THAT(frames(), IsEmpty());
  // A map of segments that leads on and on, and one that leads out of it.
  for (size_t i = 0; i < 100; ++i) Set(kSegments + i, uint8_t{1});
  EXPECT_EQ(WalkFrom(kHeap + 99 * 128, 0), StackEnd::kNoTable);
  Set(kSegments + 2, uint8_t{3});
  EXPECT_EQ(WalkFrom(kHeap + 2 * 128 + 8, 0), StackEnd::kNoTable);
}

TEST_F(HotspotWalkTest, EndsWhereAFrameCannotBe) {
  const Blob none = NewCompiled(0, 3);
  EXPECT_EQ(WalkFrom(none.code + 8, 0), StackEnd::kUnsupported);
  const Blob huge = NewCompiled(1 << 28, 3);
  EXPECT_EQ(WalkFrom(huge.code + 8, 0), StackEnd::kUnsupported);
  const Blob beyond = NewCompiled(1000, 3);
  EXPECT_EQ(WalkFrom(beyond.code + 8, 0), StackEnd::kBadRead);
}

}  // namespace
}  // namespace ksym
