// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/stack_walk.h"

#include <execinfo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "tests/ksym/unwind/frames_fixture.h"
#include "tests/ksym/unwind/loaded_code.h"

namespace ksym {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kCode = 0x7f0000001000;  // the made-up table's base
constexpr uint64_t kCodeSize = 0x1000;
constexpr uint64_t kGenerated = 0x7f0000100000;  // code without a table
constexpr uint64_t kStack = 0x7ffc00000000;
constexpr size_t kStackWords = 64;

// A made-up program: one table with a row per 16 bytes, and a stack.
class Program {
 public:
  Program() {
    table_.base = {0x1000};
    table_.size = kCodeSize;
    table_.rows.emplace_back();
    registers_[static_cast<size_t>(X86Register::kRsp)] = kStack;
    parts_ = {{{kStack}, std::as_bytes(std::span(words_))}};
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // The next 16 bytes of code; returns a return address in them.
  uint64_t Code(CfaKind cfa, int offset,
                FramePointerKind rbp = FramePointerKind::kSame,
                int fp_offset = 0) {
    UnwindRow row = {static_cast<uint32_t>(16 * table_.rows.size()),
                     static_cast<int16_t>(offset),
                     static_cast<int8_t>(fp_offset), MakeRule(cfa, rbp)};
    table_.rows.push_back(row);
    return kCode + row.pc + 8;
  }
  void Register(X86Register number, uint64_t value) {
    registers_[static_cast<size_t>(number)] = value;
  }
  // A word of the stack, counted from RSP.
  void Word(size_t index, uint64_t value) { words_.at(index) = value; }

  // The words from `first` on, `count` of them, are not in the copy.
  void LeaveOut(size_t first, size_t count) {
    const auto bytes = std::as_bytes(std::span(words_));
    parts_ = {
        {{kStack}, bytes.first(first * 8)},
        {{kStack + (first + count) * 8}, bytes.subspan((first + count) * 8)}};
  }

  StackEnd Walk(uint64_t ip, size_t max_frames = 100) {
    const StackCopy copy = {{ip}, registers_, parts_};
    WalkStack(copy, max_frames,
              {.find = [this](Address at) { return Find(at); }}, stack_);
    return stack_.end;
  }
  uint64_t unread() const { return stack_.unread.value; }
  std::vector<uint64_t> frames() const {
    std::vector<uint64_t> values;
    values.reserve(stack_.frames.size());
    for (const Address frame : stack_.frames) values.push_back(frame.value);
    return values;
  }

 private:
  CodeAt Find(Address at) const {
    if (at.value - kCode < kCodeSize) {
      return {CodeAt::Kind::kTable, &table_, kCode - table_.base.value};
    }
    if (at.value - kGenerated < kCodeSize) return {CodeAt::Kind::kNoTable};
    return {};
  }

  UnwindTable table_;
  std::array<uint64_t, kMachineRegisters> registers_ = {};
  std::array<uint64_t, kStackWords> words_ = {};
  std::vector<StackPart> parts_;
  WalkedStack stack_;
};

uint64_t StackAddress(size_t word) { return kStack + 8 * word; }

// The CFA is found by RSP, by RBP, in memory by either, and by any register in
// the innermost frame.
TEST(StackWalkTest, FindsTheCfaByEachKind) {
  struct Case {
    CfaKind kind;
    int offset;
  };
  for (const Case& c :
       {Case{CfaKind::kStackPointer, 4}, Case{CfaKind::kFramePointer, 2},
        Case{CfaKind::kExtra, 1},
        Case{CfaKind::kStackPointerDeref, PackCfaOffset(1, -1)},
        Case{CfaKind::kFramePointerDeref, PackCfaOffset(-1, -1)},
        Case{CfaKind::kLeafRegister, PackCfaOffset(10, -2)}}) {
    Program program;
    const uint64_t leaf = program.Code(c.kind, c.offset);
    const uint64_t end = program.Code(CfaKind::kEnd, 0);
    program.Register(X86Register::kRbp, StackAddress(2));
    program.Register(X86Register::kRbx, StackAddress(3));
    program.Register(X86Register::kR10, StackAddress(6));
    program.Word(1, StackAddress(5));
    program.Word(3, end);
    EXPECT_EQ(program.Walk(leaf), StackEnd::kOutermost)
        << static_cast<int>(c.kind);
    EXPECT_THAT(program.frames(), ElementsAre(leaf, end));
  }
}

// A return address in a register leads to a caller whose frame begins where
// this one does, or above, but not below.
TEST(StackWalkTest, ReturnsByARegister) {
  for (const int words : {0, 1, 5}) {
    Program program;
    const uint64_t leaf = program.Code(
        CfaKind::kReturnRegister, PackCfaOffset(5, static_cast<int8_t>(words)));
    const uint64_t caller = program.Code(CfaKind::kStackPointer, 2);
    const uint64_t end = program.Code(CfaKind::kEnd, 0);
    program.Register(X86Register::kRdi, caller);
    program.Word(static_cast<size_t>(words) + 1, end);
    EXPECT_EQ(program.Walk(leaf), StackEnd::kOutermost);
    EXPECT_THAT(program.frames(), ElementsAre(leaf, caller, end));
  }
  Program program;
  const uint64_t below =
      program.Code(CfaKind::kReturnRegister, PackCfaOffset(5, -1));
  EXPECT_EQ(program.Walk(below), StackEnd::kNoProgress);
  const uint64_t up = program.Code(CfaKind::kStackPointer, 1);
  const uint64_t again =
      program.Code(CfaKind::kReturnRegister, PackCfaOffset(5, 0));
  program.Word(0, again);
  EXPECT_EQ(program.Walk(up), StackEnd::kUnsupported);
}

// A linkage stub has pushed a word from its constant on.
TEST(StackWalkTest, FindsTheCfaOfStubs) {
  Program program;
  const uint64_t stub = program.Code(CfaKind::kPlt, 11) - 8;
  const uint64_t end = program.Code(CfaKind::kEnd, 0);
  program.Word(0, end);
  EXPECT_EQ(program.Walk(stub + 10), StackEnd::kOutermost);
  program.Word(0, 0);
  program.Word(1, end);
  EXPECT_EQ(program.Walk(stub + 11), StackEnd::kOutermost);
}

// RBP and RBX are taken from where each kind has them.
TEST(StackWalkTest, RestoresRegistersByEachKind) {
  struct Case {
    FramePointerKind kind;
    int offset;
    StackEnd by_rbp;
    StackEnd by_rbx;
  };
  constexpr auto kFound = StackEnd::kOutermost;
  constexpr auto kLost = StackEnd::kUnsupported;
  for (const Case& c :
       {Case{FramePointerKind::kSaved, -2, kFound, kLost},
        Case{FramePointerKind::kSavedExtraBelow, -2, kFound, kFound},
        Case{FramePointerKind::kSavedExtraBelow2, -2, kFound, kLost},
        Case{static_cast<FramePointerKind>(15), -2, kFound, kLost},
        Case{FramePointerKind::kSavedAtFramePointer, 6, kFound, kLost},
        Case{FramePointerKind::kLost, 0, kLost, kLost},
        Case{FramePointerKind::kSavedExtraLost, -2, kFound, kLost}}) {
    for (const CfaKind by : {CfaKind::kFramePointer, CfaKind::kExtra}) {
      Program program;
      const uint64_t leaf =
          program.Code(CfaKind::kStackPointer, 16, c.kind, c.offset);
      const uint64_t caller = program.Code(by, 2);
      const uint64_t end = program.Code(CfaKind::kEnd, 0);
      program.Register(X86Register::kRbp, StackAddress(8));
      program.Word(15, caller);
      program.Word(14, StackAddress(18));  // RBP
      program.Word(13, StackAddress(18));  // RBX in the word below
      program.Word(19, end);
      const StackEnd expected =
          by == CfaKind::kFramePointer ? c.by_rbp : c.by_rbx;
      // A register that is not lost is 0 here: a CFA that is not above RSP.
      const StackEnd found = program.Walk(leaf);
      EXPECT_TRUE(found == expected ||
                  (expected == kLost && found == StackEnd::kNoProgress))
          << static_cast<int>(c.kind) << " " << static_cast<int>(found);
    }
  }
}

// RBX is found up to 9 words below RBP.
TEST(StackWalkTest, FindsRbxFarBelowRbp) {
  for (int below = 2; below <= 9; ++below) {
    Program program;
    const uint64_t leaf =
        program.Code(CfaKind::kStackPointer, 16,
                     static_cast<FramePointerKind>(below + 6), -2);
    const uint64_t caller = program.Code(CfaKind::kExtra, 2);
    const uint64_t end = program.Code(CfaKind::kEnd, 0);
    program.Word(15, caller);
    program.Word(14 - static_cast<size_t>(below), StackAddress(18));
    program.Word(19, end);
    EXPECT_EQ(program.Walk(leaf), StackEnd::kOutermost) << below;
  }
}

// A call may be the last instruction of its function: callers are looked up one
// byte earlier, the innermost frame where it is.
TEST(StackWalkTest, LooksCallersUpInTheirCall) {
  Program program;
  const uint64_t leaf = program.Code(CfaKind::kStackPointer, 1) - 8;
  const uint64_t caller = program.Code(CfaKind::kStackPointer, 1) + 8;
  const uint64_t end = program.Code(CfaKind::kEnd, 0);
  program.Code(CfaKind::kUnsupported, 0);
  program.Word(0, caller);
  program.Word(1, end + 8);
  EXPECT_EQ(program.Walk(leaf), StackEnd::kOutermost);
  EXPECT_THAT(program.frames(), ElementsAre(leaf, caller, end + 8));
}

// A signal frame gives the registers of what it interrupted, which is looked up
// exactly where it was and may be on another stack.
TEST(StackWalkTest, StepsOverSignalFrames) {
  Program program;
  const uint64_t handler = program.Code(CfaKind::kStackPointer, 20);
  const uint64_t trampoline = program.Code(CfaKind::kSignal, 0);
  const uint64_t interrupted = program.Code(CfaKind::kFramePointer, 1) - 8;
  const uint64_t end = program.Code(CfaKind::kEnd, 0);
  program.Word(19, trampoline);
  program.Word(20 + 168 / 8, interrupted);
  program.Word(20 + 160 / 8, StackAddress(1));
  program.Word(20 + 120 / 8, StackAddress(4));
  program.Word(4, end);
  EXPECT_EQ(program.Walk(handler), StackEnd::kOutermost);
  EXPECT_THAT(program.frames(),
              ElementsAre(handler, trampoline + 1, interrupted + 1, end));
}

// Code without rows is left by its frame pointer, which must be above RSP, not
// too far, aligned, and not 0.
TEST(StackWalkTest, StepsByFramePointers) {
  Program program;
  const uint64_t end = program.Code(CfaKind::kEnd, 0);
  program.Register(X86Register::kRbp, StackAddress(4));
  program.Word(4, StackAddress(8));
  program.Word(5, kCode + 4);  // kNoInfo
  program.Word(8, 0);
  program.Word(9, end);
  EXPECT_EQ(program.Walk(kGenerated), StackEnd::kOutermost);
  EXPECT_THAT(program.frames(), ElementsAre(kGenerated, kCode + 4, end));

  program.Word(9, kCode + 5);
  EXPECT_EQ(program.Walk(kGenerated), StackEnd::kZeroFramePointer);
  EXPECT_THAT(program.frames(), ElementsAre(kGenerated, kCode + 4, kCode + 5));

  for (const uint64_t wrong :
       {StackAddress(5), StackAddress(8) + 4,
        StackAddress(6) + kMaxFrameBytes + 8, uint64_t{8}}) {
    program.Word(4, wrong);
    EXPECT_EQ(program.Walk(kGenerated), StackEnd::kNoTable) << wrong;
  }
  program.Word(4, StackAddress(6) + kMaxFrameBytes);
  EXPECT_EQ(program.Walk(kGenerated), StackEnd::kBadRead);
}

// Behind the system call of clone() the new thread, to which it returns 0, is
// at its outermost frame; the other one has a caller.
TEST(StackWalkTest, TellsTheThreadsOfACloneApart) {
  Program program;
  const uint64_t clone = program.Code(CfaKind::kClone, 1);
  const uint64_t end = program.Code(CfaKind::kEnd, 0);
  const uint64_t up = program.Code(CfaKind::kStackPointer, 1);
  program.Word(0, end);
  EXPECT_EQ(program.Walk(clone), StackEnd::kOutermost);
  EXPECT_THAT(program.frames(), ElementsAre(clone));

  program.Register(X86Register::kRax, 1234);
  EXPECT_EQ(program.Walk(clone), StackEnd::kOutermost);
  EXPECT_THAT(program.frames(), ElementsAre(clone, end));

  program.Word(0, clone);
  EXPECT_EQ(program.Walk(up), StackEnd::kUnsupported);
}

// What is missing in a copy is missed only where a word is needed.
TEST(StackWalkTest, GoesOnBehindWhatIsNotInTheCopy) {
  Program program;
  const uint64_t large = program.Code(CfaKind::kStackPointer, 20);
  const uint64_t caller =
      program.Code(CfaKind::kStackPointer, 4, FramePointerKind::kSaved, -2);
  const uint64_t by_rbp = program.Code(CfaKind::kFramePointer, 2);
  const uint64_t end = program.Code(CfaKind::kEnd, 0);
  program.Word(19, caller);
  program.Word(22, StackAddress(26));
  program.Word(23, by_rbp);
  program.Word(27, end);
  for (const auto& [first, count] :
       {std::pair(0, 19), std::pair(5, 14), std::pair(20, 2), std::pair(24, 3),
        std::pair(28, 36)}) {
    program.LeaveOut(static_cast<size_t>(first), static_cast<size_t>(count));
    EXPECT_EQ(program.Walk(large), StackEnd::kOutermost) << first;
    EXPECT_THAT(program.frames(), ElementsAre(large, caller, by_rbp, end));
  }
  for (const size_t needed : {19u, 22u, 23u, 27u}) {
    program.LeaveOut(needed, 1);
    EXPECT_EQ(program.Walk(large), StackEnd::kBadRead) << needed;
    EXPECT_EQ(program.unread(), StackAddress(needed));
  }
}

// Each other end is told apart.
TEST(StackWalkTest, SaysHowItEnded) {
  Program program;
  const uint64_t up = program.Code(CfaKind::kStackPointer, 1);
  const uint64_t still = program.Code(CfaKind::kStackPointer, 0);
  const uint64_t unsupported = program.Code(CfaKind::kUnsupported, 0);
  const uint64_t leaf_only =
      program.Code(CfaKind::kLeafRegister, PackCfaOffset(10, 0));
  const uint64_t end = program.Code(CfaKind::kEnd, 0);
  const uint64_t far = program.Code(CfaKind::kStackPointer, kStackWords + 1);

  EXPECT_EQ(program.Walk(still), StackEnd::kNoProgress);
  EXPECT_EQ(program.Walk(unsupported), StackEnd::kUnsupported);
  EXPECT_EQ(program.Walk(far), StackEnd::kBadRead);
  EXPECT_EQ(program.unread(), StackAddress(kStackWords));
  EXPECT_EQ(program.Walk(0x1234), StackEnd::kNoMapping);
  EXPECT_THAT(program.frames(), ElementsAre(0x1234));
  program.Word(0, 0x1234);
  EXPECT_EQ(program.Walk(up), StackEnd::kNoMapping);
  EXPECT_THAT(program.frames(), ElementsAre(up));
  program.Word(0, 0);
  EXPECT_EQ(program.Walk(up), StackEnd::kOutermost);
  EXPECT_THAT(program.frames(), ElementsAre(up));
  program.Word(0, leaf_only);
  program.Register(X86Register::kR10, StackAddress(4));
  EXPECT_EQ(program.Walk(up), StackEnd::kUnsupported);
  program.Word(0, up);
  program.Word(1, end);
  EXPECT_EQ(program.Walk(up, 2), StackEnd::kDepthLimit);
  EXPECT_THAT(program.frames(), ElementsAre(up, up));
  EXPECT_EQ(program.Walk(up, 3), StackEnd::kOutermost);
}

// libgcc's unwinder, about to jump to a handler, has the catcher's return
// address as its own; where the catcher's frame is its context tells.
TEST(StackWalkTest, FollowsACaughtException) {
  for (const bool is_installed : {true, false}) {
    Program program;
    const uint64_t unwinder = program.Code(CfaKind::kStackPointer, 10);
    const uint64_t catcher = program.Code(CfaKind::kStackPointer, 3);
    const uint64_t end = program.Code(CfaKind::kEnd, 0);
    program.Word(2, StackAddress(20));  // the return address's place
    program.Word(4, StackAddress(21));  // the CFA
    program.Word(5, end);               // the handler, as far as it goes
    program.Word(9, catcher);
    program.Word(12, 0x1234);  // what the catcher's caller would be
    program.Word(20, is_installed ? catcher : 0x5678);
    program.Word(23, end);
    EXPECT_EQ(program.Walk(unwinder),
              is_installed ? StackEnd::kOutermost : StackEnd::kNoMapping);
    if (is_installed) {
      EXPECT_THAT(program.frames(), ElementsAre(unwinder, catcher, end));
    } else {
      EXPECT_THAT(program.frames(), ElementsAre(unwinder, catcher));
    }
    // The handler's address is written over the saved one last.
    program.Word(20, end);
    EXPECT_EQ(program.Walk(unwinder), StackEnd::kOutermost);
  }
}

// A stack as the walker and as glibc's backtrace(3) see it, from one place.
struct Seen {
  WalkedStack walked;
  std::vector<void*> backtrace;
};

Seen Look() {
  static const LoadedCode* const kLoaded = new LoadedCode();
  Seen seen;
  ucontext_t context;
  ::getcontext(&context);
  const greg_t* r = context.uc_mcontext.gregs;
  const auto rsp = static_cast<uint64_t>(r[REG_RSP]);
  StackCopy copy;
  copy.ip = {static_cast<uint64_t>(r[REG_RIP])};
  copy.registers[static_cast<size_t>(X86Register::kRsp)] = rsp;
  copy.registers[static_cast<size_t>(X86Register::kRbp)] =
      static_cast<uint64_t>(r[REG_RBP]);
  copy.registers[static_cast<size_t>(X86Register::kRbx)] =
      static_cast<uint64_t>(r[REG_RBX]);
  const uint64_t start = rsp - 128;
  // Not by memcpy(3), which sanitizers would stop.
  std::vector<std::byte> bytes(size_t{64} << 10);
  const iovec local = {bytes.data(), bytes.size()};
  constexpr size_t kPage = 4096;
  std::vector<iovec> remote;
  for (uint64_t at = start; at < start + bytes.size();) {
    const uint64_t size = kPage - at % kPage;
    remote.push_back({reinterpret_cast<void*>(at), size});
    at += size;
  }
  const ssize_t got = ::process_vm_readv(::getpid(), &local, 1, remote.data(),
                                         remote.size(), 0);
  const StackPart part = {
      {start}, std::span(bytes).first(got < 0 ? 0 : static_cast<size_t>(got))};
  copy.parts = {&part, 1};
  WalkStack(copy, 100, {.find = [](Address at) { return kLoaded->Find(at); }},
            seen.walked);
  seen.backtrace.resize(100);
  seen.backtrace.resize(
      static_cast<size_t>(::backtrace(seen.backtrace.data(), 100)));
  return seen;
}

void ExpectSame(const Seen& seen) {
  EXPECT_EQ(seen.walked.end, StackEnd::kOutermost);
  // A sanitizer's backtrace(3) sees itself as well.
  const size_t more = seen.backtrace.size() - seen.walked.frames.size();
  ASSERT_LE(more, 1u);
  for (size_t i = 1; i < seen.walked.frames.size(); ++i) {
    const auto theirs = reinterpret_cast<uint64_t>(seen.backtrace[i + more]);
    const uint64_t ours = seen.walked.frames[i].value;
    // One more around signals.
    EXPECT_TRUE(ours == theirs || ours == theirs + 1) << i;
  }
}

// The stacks of callbacks from a library, of alloca, of realigned stacks, of
// recursion and of handlers are those that the system's own unwinder finds.
TEST(StackWalkTest, AgreesWithTheSystemsUnwinder) {
  Seen seen;
  const auto look = [&] { seen = Look(); };
  CallFromQsort(look);
  ExpectSame(seen);
  CallFromAlloca(1000, look);
  ExpectSame(seen);
  CallRealigned({100, {}}, look);
  ExpectSame(seen);
  CallRecursively(40, look);
  ExpectSame(seen);
  CallFromCatch(look);
  ExpectSame(seen);
}

// So are those of other threads, up to where these start.
TEST(StackWalkTest, EndsWhereThreadsStart) {
  Seen seen;
  std::thread([&] { CallFromQsort([&] { seen = Look(); }); }).join();
  ExpectSame(seen);
}

// And those of signal handlers, with what they interrupted.
TEST(StackWalkTest, SeesThroughSignalHandlers) {
  static Seen seen;
  struct sigaction action = {};
  action.sa_handler = [](int) { seen = Look(); };
  struct sigaction before = {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  CallFromQsort([] { ::raise(SIGUSR1); });
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
  ExpectSame(seen);
}

}  // namespace
}  // namespace ksym
