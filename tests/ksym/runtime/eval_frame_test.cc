// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/eval_frame.h"

#include <gtest/gtest.h>

#include <string>

namespace ksym {
namespace {

using namespace std::string_literals;

// Arguments of a function.
constexpr size_t kFirst = 0;
constexpr size_t kSecond = 1;

std::optional<CpythonFrameWord> Find(const std::string& code, size_t argument) {
  return FindCpythonFrameWord(std::as_bytes(std::span(code)), argument);
}

// push %rbp; push %rbx; sub $0xf8,%rsp
const std::string kBegin = "\x55\x53\x48\x81\xec\xf8\x00\x00\x00"s;

// The argument goes through registers, and what is stored is an address within
// the frame; calls leave those that callees keep.
TEST(EvalFrameTest, FollowsTheFrame) {
  const std::string code = kBegin +
                           "\x48\x89\xf3"                  // mov %rsi,%rbx
                           "\x48\x89\x44\x24\x10"          // mov %rax,16(%rsp)
                           "\xe8\x00\x00\x00\x00"          // call
                           "\x74\x02"                      // je
                           "\x48\x8d\xb3\x68\x01\x00\x00"  // lea 360(%rbx),%rsi
                           "\x48\x89\x74\x24\x20\xc3"s;    // mov %rsi,32(%rsp)
  // The return address, two pushes and 248 bytes are above RSP.
  EXPECT_EQ(Find(code, kSecond),
            (CpythonFrameWord{.below_cfa = 240, .offset = 360}));
  EXPECT_EQ(Find(code, kFirst), std::nullopt);
}

// A function may begin in several ways that store the same.
TEST(EvalFrameTest, SeveralBegins) {
  const std::string begin =
      kBegin +
      "\x48\x89\xf3"                  // mov %rsi,%rbx
      "\x48\x8d\xb3\x68\x01\x00\x00"  // lea 360(%rbx),%rsi
      "\x48\x89\x74\x24\x20\xc3"s;    // mov %rsi,32(%rsp)
  // lea 360(%rbx),%rdi, or 352(%rbx); mov %rdi,32(%rsp)
  EXPECT_TRUE(Find(begin + "\x48\x8d\xbb\x68\x01\x00\x00"
                           "\x48\x89\x7c\x24\x20"s,
                   kSecond));
  EXPECT_FALSE(Find(begin + "\x48\x8d\xbb\x60\x01\x00\x00"
                            "\x48\x89\x7c\x24\x20"s,
                    kSecond));
}

// Where the function returns early it goes on behind.
TEST(EvalFrameTest, EarlyReturns) {
  const std::string code = kBegin +
                           "\x74\x06"                  // je: the store
                           "\x48\x83\xc4\x40\x31\xf6"  // add; xor %esi,%esi
                           "\x48\x89\x74\x24\x20\xc3"s;
  EXPECT_FALSE(Find(code, kSecond));
  const std::string returns = kBegin +
                              "\x74\x07\x48\x83\xc4\x40\x31\xf6\xc3"
                              "\x48\x89\x74\x24\x20\xc3"s;
  EXPECT_EQ(Find(returns, kSecond),
            (CpythonFrameWord{.below_cfa = 240, .offset = 0}));
}

// Frames may be found by RBP, and the frame object itself may be stored.
TEST(EvalFrameTest, FramePointers) {
  const std::string code =
      "\x55\x48\x89\xe5"        // push %rbp; mov %rsp,%rbp
      "\x48\x83\xec\x40"        // sub $64,%rsp
      "\x48\x89\x7d\xe8\xc3"s;  // mov %rdi,-24(%rbp)
  EXPECT_EQ(Find(code, kFirst),
            (CpythonFrameWord{.below_cfa = 40, .offset = 0}));
}

// What a call may change, the place that something else is stored in, what is
// outside of the frame, and code behind the function's end tell nothing.
TEST(EvalFrameTest, WhatTellsNothing) {
  const std::string store = "\x48\x89\x74\x24\x20"s;  // mov %rsi,32(%rsp)
  EXPECT_TRUE(Find(kBegin + store + "\xc3", kSecond));
  EXPECT_FALSE(Find(kBegin + "\xe8\x00\x00\x00\x00"s + store, kSecond));
  EXPECT_FALSE(Find(kBegin + store + "\x48\x89\x4c\x24\x20\xc3"s, kSecond));
  EXPECT_FALSE(Find(kBegin + "\xc3" + store, kSecond));
  // mov %rsi,264(%rsp): the return address; mov %rsi,4(%rsp); mov %esi,32(%rsp)
  for (const auto& other : {"\x48\x89\xb4\x24\x08\x01\x00\x00"s,
                            "\x48\x89\x74\x24\x04"s, "\x89\x74\x24\x20"s}) {
    EXPECT_FALSE(Find(kBegin + other + "\xc3", kSecond));
  }
  EXPECT_FALSE(Find("", kSecond));
  EXPECT_FALSE(Find(std::string(10000, '\x90') + store, kSecond));
  // xor %esi,%esi
  EXPECT_FALSE(Find(kBegin + "\x31\xf6"s + store, kSecond));
}

}  // namespace
}  // namespace ksym
