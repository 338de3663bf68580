// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/thread_states.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace ksym {
namespace {

constexpr uint64_t kMemoryAt = 0x10000;
constexpr uint64_t kSelf = 0x10000;  // pthread_self()
constexpr uint64_t kOtherThread = 0x10080;
constexpr uint64_t kNewest = 0x10100;          // the list's begin
constexpr uint64_t kInterpretersAt = 0x10200;  // 64 bytes each
constexpr uint64_t kStatesAt = 0x11000;        // 256 bytes each

// A process of which a thread may have states in several interpreters. In each
// of these it has no lock, until it Holds() one.
class ThreadStatesTest : public testing::Test {
 protected:
  ThreadStatesTest() {
    interpreter_.layout =
        *CpythonLayoutOf({.major = 3, .minor = 13, .micro = 5});
    interpreter_.threads[0] = Near(8);
    interpreter_.threads[1] = Near(16);
    interpreter_.lists = {
        .newest = {kNewest}, .interpreter_next = 8, .interpreter_threads = 24};
  }
  static CpythonThreadPlace Near(int32_t distance) {
    return {.kind = CpythonThreadPlace::Kind::kNearThread,
            .address = {},
            .distance = distance};
  }
  void Set(uint64_t address, uint64_t value) {
    std::memcpy(memory_.data() + (address - kMemoryAt), &value, sizeof(value));
  }
  static uint64_t InterpreterAt(uint64_t number) {
    return kInterpretersAt + 64 * number;
  }
  static uint64_t StateAt(uint64_t number) { return kStatesAt + 256 * number; }

  // Interpreters up to that number, the last one of which is the newest.
  void PutInterpreters(uint64_t count) {
    Set(kNewest, InterpreterAt(count - 1));
    for (uint64_t i = 1; i < count; ++i) {
      Set(InterpreterAt(i) + 8, InterpreterAt(i - 1));
    }
  }
  // A state at the begin of its interpreter's list.
  void PutState(uint64_t number, uint64_t interpreter, uint64_t thread) {
    const uint64_t list = InterpreterAt(interpreter) + 24;
    uint64_t first = 0;
    std::memcpy(&first, memory_.data() + (list - kMemoryAt), sizeof(first));
    Set(StateAt(number) + CpythonOffsets::kNextThread, first);
    Set(StateAt(number) + CpythonOffsets::kInterpreter,
        InterpreterAt(interpreter));
    Set(StateAt(number) + interpreter_.layout.thread_id, thread);
    Set(StateAt(number) + interpreter_.layout.thread_frame, 0x1f000);
    Set(list, StateAt(number));
  }
  void Holds(uint64_t state) { Set(kSelf + 8, StateAt(state)); }
  void IsBoundTo(uint64_t state) { Set(kSelf + 16, StateAt(state)); }

  CpythonThreadStates Find() {
    PieceMemory memory;
    memory.Add({kMemoryAt}, std::as_bytes(std::span(memory_)));
    return FindThreadStates(memory, interpreter_, {.pointer = {kSelf}});
  }
  void Expect(uint64_t inner, uint64_t outer) {
    EXPECT_EQ(Find(), (CpythonThreadStates{.inner = inner, .outer = outer}));
  }
  void ExpectUnknown() {
    EXPECT_EQ(Find(), CpythonThreadStates{.is_unknown = true});
  }

  CpythonInterpreter interpreter_;
  std::string memory_ = std::string(0x30000, '\0');
};

TEST_F(ThreadStatesTest, OneInterpreter) {
  PutInterpreters(1);
  PutState(0, 0, kSelf);
  IsBoundTo(0);
  Expect(StateAt(0), 0);
  Holds(0);
  Expect(StateAt(0), 0);
}

TEST_F(ThreadStatesTest, OneInsideAnother) {
  PutInterpreters(3);
  PutState(0, 0, kSelf);
  PutState(1, 0, kOtherThread);
  PutState(2, 1, kSelf);
  PutState(3, 1, kOtherThread);
  IsBoundTo(2);
  Expect(StateAt(2), StateAt(0));
  Holds(2);
  Expect(StateAt(2), StateAt(0));
  // It was called back into the one that it began with.
  IsBoundTo(0);
  Holds(0);
  Expect(StateAt(0), StateAt(2));
}

// Frames that are objects do not tell which of two is inside of the other.
TEST_F(ThreadStatesTest, FramesThatAreObjects) {
  interpreter_.layout = *CpythonLayoutOf({.major = 3, .minor = 9, .micro = 2});
  PutInterpreters(2);
  PutState(0, 0, kSelf);
  PutState(1, 1, kSelf);
  IsBoundTo(0);
  Expect(StateAt(1), 0);
  Holds(1);
  Expect(StateAt(1), StateAt(0));
}

// Structs on the C stack tell.
TEST_F(ThreadStatesTest, CallsOnTheStack) {
  interpreter_.layout = *CpythonLayoutOf({.major = 3, .minor = 11, .micro = 2});
  PutInterpreters(2);
  PutState(0, 0, kSelf);
  PutState(1, 1, kSelf);
  IsBoundTo(0);
  constexpr uint64_t kInner = 0x20000;
  constexpr uint64_t kOuter = 0x20100;
  for (const uint64_t call : {kInner, kOuter}) {
    Set(call + interpreter_.layout.cframe_frame, 0x1f000);
  }
  Set(StateAt(0) + interpreter_.layout.thread_frame, kOuter);
  Set(StateAt(1) + interpreter_.layout.thread_frame, kInner);
  Expect(StateAt(1), StateAt(0));
  Set(StateAt(0) + interpreter_.layout.thread_frame, kInner);
  Set(StateAt(1) + interpreter_.layout.thread_frame, kOuter);
  Expect(StateAt(0), StateAt(1));
  // A list that is not whole.
  Set(StateAt(1) + CpythonOffsets::kInterpreter, InterpreterAt(0));
  ExpectUnknown();
}

TEST_F(ThreadStatesTest, RunsTheOneThatItBeganWith) {
  PutInterpreters(2);
  PutState(0, 0, kSelf);
  PutState(1, 1, kSelf);
  PutState(2, 1, kOtherThread);
  IsBoundTo(0);
  // The other one has nothing to run.
  Set(StateAt(1) + interpreter_.layout.thread_frame, 0);
  Expect(StateAt(0), 0);
}

// Two others could be the innermost one, or the one that is called from.
TEST_F(ThreadStatesTest, NotClear) {
  PutInterpreters(3);
  PutState(0, 0, kSelf);
  PutState(1, 1, kSelf);
  PutState(2, 2, kSelf);
  IsBoundTo(0);
  Expect(StateAt(0), 0);
}

TEST_F(ThreadStatesTest, ListsThatAreNotWhole) {
  PutInterpreters(2);
  PutState(0, 0, kSelf);
  PutState(1, 1, kSelf);
  IsBoundTo(0);
  // A state of another interpreter.
  Set(StateAt(1) + CpythonOffsets::kInterpreter, InterpreterAt(0));
  Expect(StateAt(0), 0);
  Set(StateAt(1) + CpythonOffsets::kInterpreter, InterpreterAt(1));
  Expect(StateAt(0), StateAt(1));
  // Rings of states and of interpreters.
  Set(StateAt(1) + interpreter_.layout.thread_id, kOtherThread);
  Set(StateAt(1) + CpythonOffsets::kNextThread, StateAt(1));
  Expect(StateAt(0), 0);
  Set(StateAt(1) + CpythonOffsets::kNextThread, 0);
  Expect(StateAt(0), 0);
  Set(InterpreterAt(0) + 8, InterpreterAt(1));
  Expect(StateAt(0), 0);
  // An address that nothing is at.
  Set(InterpreterAt(0) + 8, 0x8);
  Expect(StateAt(0), 0);
}

// A build whose lists are not known has what the two places say.
TEST_F(ThreadStatesTest, WithoutLists) {
  PutInterpreters(2);
  PutState(0, 0, kSelf);
  PutState(1, 1, kSelf);
  IsBoundTo(0);
  interpreter_.lists.reset();
  Expect(StateAt(0), 0);
}

}  // namespace
}  // namespace ksym
