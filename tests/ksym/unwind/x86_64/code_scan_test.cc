// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/x86_64/code_scan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ksym {
namespace {

using std::string_view_literals::operator""sv;

// push %rbx; call next function but one; pop %rbx; ret
constexpr std::string_view kCaller = "\x53\xe8\x02\x00\x00\x00\x5b\xc3"sv;

std::vector<ScannedRange> Scan(std::string_view bytes,
                               std::vector<uint32_t> entries,
                               ScanBounds bounds = {}) {
  CodeToScan code;
  code.bounds = bounds;
  code.gaps = {{0, static_cast<uint32_t>(bytes.size())}};
  code.read = [bytes](uint32_t at, std::span<std::byte> out) {
    if (at + out.size() > bytes.size()) return false;
    std::memcpy(out.data(), bytes.data() + at, out.size());
    return true;
  };
  code.entries = std::move(entries);
  code.elsewhere = [](uint32_t) { return CodeElsewhere{}; };
  return ScanCode(std::move(code));
}

// RSP's distance from the CFA, or -1 where nothing is known.
int32_t RspAt(const std::vector<ScannedRange>& ranges, uint32_t at) {
  for (const ScannedRange& range : ranges) {
    if (range.start <= at && at < range.end) return range.facts.rsp;
  }
  return -1;
}

// Pushes, subtractions and pops move RSP, and a register that was saved is back
// after its pop.
TEST(ScanCodeTest, FollowsTheStack) {
  // push %rbx; sub $16, %rsp; add $16, %rsp; pop %rbx; ret
  const auto ranges =
      Scan("\x53\x48\x83\xec\x10\x48\x83\xc4\x10\x5b\xc3"sv, {0});
  EXPECT_EQ(RspAt(ranges, 0), 8);
  EXPECT_EQ(RspAt(ranges, 1), 16);
  EXPECT_EQ(RspAt(ranges, 5), 32);
  EXPECT_EQ(RspAt(ranges, 9), 16);
  EXPECT_EQ(RspAt(ranges, 10), 8);
  ASSERT_EQ(ranges.size(), 5u);
  EXPECT_EQ(ranges[1].facts.rbx_saved, 16);
  EXPECT_EQ(ranges[4].facts.rbx_saved, FrameFacts::kInRegister);
}

// What a call leads to is a function, and what follows a call that returns
// belongs to the caller.
TEST(ScanCodeTest, FollowsCalls) {
  const auto ranges = Scan(std::string(kCaller) + "\x50\x58\xc3", {0});
  EXPECT_EQ(RspAt(ranges, 6), 16);
  EXPECT_EQ(RspAt(ranges, 8), 8);
  EXPECT_EQ(RspAt(ranges, 9), 16);
}

// Behind a call that does not return is another function, of which the caller's
// frame says nothing.
TEST(ScanCodeTest, StopsAtCallsThatDoNotReturn) {
  // push %rax; call stop; push %rbx; pop %rbx; ret; stop: ud2
  const auto ranges =
      Scan("\x50\xe8\x03\x00\x00\x00\x53\x5b\xc3\x0f\x0b"sv, {0});
  EXPECT_EQ(RspAt(ranges, 1), 16);
  EXPECT_EQ(RspAt(ranges, 6), 8);
  EXPECT_EQ(RspAt(ranges, 7), 16);
}

// Data between functions says nothing, whatever instruction it looks like.
TEST(ScanCodeTest, LeavesDataAlone) {
  // ret; data that falls into what cannot be decoded
  const auto ranges = Scan("\xc3\x50\x50\x50\x06\x06\x06\x06"sv, {0});
  EXPECT_EQ(RspAt(ranges, 0), 8);
  EXPECT_EQ(RspAt(ranges, 1), -1);
}

// A function that takes its return address away, or writes over it, or pops
// its arguments, has no rows.
TEST(ScanCodeTest, RefusesWhatFunctionsDoNotDo) {
  // sub $8, %rsp; ret
  EXPECT_TRUE(Scan("\x48\x83\xec\x08\xc3"sv, {0}).empty());
  // ret $8
  EXPECT_TRUE(Scan("\xc2\x08\x00"sv, {0}).empty());
  // pop %rax; jmp *%rax
  EXPECT_EQ(RspAt(Scan("\x58\xff\xe0"sv, {0}), 1), -1);
  // mov %rax, (%rsp); ret
  EXPECT_EQ(RspAt(Scan("\x48\x89\x04\x24\xc3"sv, {0}), 4), -1);
}

// Two ways to one place that contradict each other leave nothing known.
TEST(ScanCodeTest, RefusesContradictions) {
  // je over; push %rax; over: ret
  EXPECT_TRUE(Scan("\x74\x01\x50\xc3"sv, {0}).empty());
}

// A frame whose stack is aligned is found by RBP.
TEST(ScanCodeTest, FollowsFramePointers) {
  // push %rbp; mov %rsp, %rbp; and $-32, %rsp; leave; ret
  const auto ranges = Scan("\x55\x48\x89\xe5\x48\x83\xe4\xe0\xc9\xc3"sv, {0});
  ASSERT_EQ(RspAt(ranges, 8), FrameFacts::kUnknown);
  for (const ScannedRange& range : ranges) {
    if (range.start == 8) {
      EXPECT_EQ(range.facts.rbp, 16);
    }
  }
  EXPECT_EQ(RspAt(ranges, 9), 8);
}

// Code that only a jump table leads to has the frame of the jump, if its way
// out proves so.
TEST(ScanCodeTest, FindsWhatIndirectJumpsLeadTo) {
  // push %rbx; jmp *%rax; nop; pop %rbx; ret; and one that returns too low
  const auto ranges = Scan("\x53\xff\xe0\x90\x5b\xc3\x5b\x58\x58\xc3"sv, {0});
  EXPECT_EQ(RspAt(ranges, 4), 16);
  EXPECT_EQ(RspAt(ranges, 5), 8);
  EXPECT_EQ(RspAt(ranges, 6), -1);
}

// Fewer instructions are kept than the bound says, and no more are followed.
TEST(ScanCodeTest, BoundsInstructions) {
  constexpr ScanBounds kBounds = {.instructions = 50'000};
  std::string code(kBounds.instructions - 2, '\x90');
  code += '\xc3';
  EXPECT_EQ(RspAt(Scan(code, {0}, kBounds), 0), 8);
  code.insert(0, "\x90");
  EXPECT_EQ(RspAt(Scan(code, {0}, kBounds), 0), -1);
}

// A guess is given up at its bound.
TEST(ScanCodeTest, BoundsGuesses) {
  // ret, then a function that nothing names: many times inc %eax; ret
  std::string code = "\xc3";
  for (size_t i = kStrandSteps + 1; i < kMaxGuessSteps; ++i) {
    code += "\xff\xc0";
  }
  code += "\xc3";
  EXPECT_EQ(RspAt(Scan(code, {0}), 1), 8);
  code.insert(1, "\xff\xc0");
  EXPECT_EQ(RspAt(Scan(code, {0}), 1), -1);
}

// All that is followed has a bound together: what is left of it is used, and
// not one step more.
TEST(ScanCodeTest, BoundsSteps) {
  // Each is given up as a guess: many times cwtl; ret
  const std::string given_up = std::string(kMaxGuessSteps, '\x98') + "\xc3";
  constexpr ScanBounds kBounds = {.steps = 10 * kMaxGuessSteps};
  std::string code;
  size_t left = kBounds.steps;
  for (; left > kMaxGuessSteps; left -= kMaxGuessSteps) code += given_up;
  // push %rax; pop %rax; ret
  constexpr std::string_view kLast = "\x50\x58\xc3"sv;
  const auto rsp_in_last = [&](size_t before) {
    std::string all = code + std::string(before - 1, '\x98') + "\xc3";
    all += kLast;
    return RspAt(Scan(all, {}, kBounds), static_cast<uint32_t>(all.size() - 1));
  };
  const size_t before = left - kLast.size() - 2 * kStrandSteps;
  EXPECT_EQ(rsp_in_last(before), 8);
  EXPECT_EQ(rsp_in_last(before + 1), -1);
}

// To begin a function counts as well, so that many small ones cost no more than
// a few large ones.
TEST(ScanCodeTest, BoundsFunctions) {
  constexpr uint32_t kFunctions = 1000;
  constexpr ScanBounds kBounds = {.steps = kFunctions * (kStrandSteps + 1)};
  const auto ranges = Scan(std::string(2 * kFunctions, '\xc3'), {}, kBounds);
  EXPECT_EQ(RspAt(ranges, kFunctions - 1), 8);
  EXPECT_EQ(RspAt(ranges, kFunctions), -1);
}

// So often something may turn out to be wrong that had been thought to be
// right, and then nothing more is followed.
TEST(ScanCodeTest, BoundsReversals) {
  // push %rax; inside: pop %rax; ret: a function, until another one calls
  // inside: push %rax; je over; call inside; pop %rax; ret;
  // over: pop %rax; ret
  constexpr std::string_view kReversal =
      "\x50\x58\xc3"
      "\x50\x74\x07\xe8\xf6\xff\xff\xff\x58\xc3\x58\xc3"sv;
  const auto rsp_in_last = [&](size_t reversals) {
    std::string code;
    for (size_t i = 0; i < reversals; ++i) code += kReversal;
    code += "\x50\x58\xc3"sv;
    return RspAt(Scan(code, {}), static_cast<uint32_t>(code.size() - 1));
  };
  EXPECT_EQ(rsp_in_last(kMaxReversals - 1), 8);
  EXPECT_EQ(rsp_in_last(kMaxReversals), -1);
}

// Pages beyond the bound are not read.
TEST(ScanCodeTest, BoundsPages) {
  const size_t page = 4096;
  // int3, but for a ret at the start of each
  std::string code(kMaxCodePages * page + 1, '\xcc');
  std::vector<uint32_t> entries;
  for (uint32_t i = 0; i <= kMaxCodePages; ++i) {
    entries.push_back(i * page);
    code[entries.back()] = '\xc3';
  }
  const auto ranges = Scan(code, entries);
  EXPECT_EQ(RspAt(ranges, static_cast<uint32_t>((kMaxCodePages - 1) * page)),
            8);
  EXPECT_EQ(RspAt(ranges, static_cast<uint32_t>(kMaxCodePages * page)), -1);
}

// An instruction is decoded from its own bytes, and is unknown without them.
TEST(DecodeInstructionTest, ReadsNoFurther) {
  const std::array<std::byte, 16> prefixes = [] {
    std::array<std::byte, 16> bytes;
    bytes.fill(std::byte{0x66});
    return bytes;
  }();
  EXPECT_EQ(DecodeInstruction(prefixes).size, 0);
  EXPECT_EQ(DecodeInstruction({}).size, 0);
  // sub $0x12345678, %rsp
  const std::array<uint8_t, 7> sub = {0x48, 0x81, 0xec, 0x78, 0x56, 0x34, 0x12};
  const auto bytes = std::as_bytes(std::span(sub));
  for (size_t i = 0; i < sub.size(); ++i) {
    EXPECT_EQ(DecodeInstruction(bytes.first(i)).size, 0);
  }
  EXPECT_EQ(DecodeInstruction(bytes).size, 7);
  EXPECT_EQ(DecodeInstruction(bytes).number, -0x12345678);
}

}  // namespace
}  // namespace ksym
