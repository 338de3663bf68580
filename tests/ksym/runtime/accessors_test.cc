// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/accessors.h"

#include <gtest/gtest.h>

#include <string>

namespace ksym {
namespace {

using namespace std::string_literals;

constexpr ElfAddress kAt = {0x1000};
constexpr ElfAddress kVariable = {0x8000};

std::optional<uint16_t> Member(const std::string& code) {
  return FindReturnedMember(std::as_bytes(std::span(code)));
}

std::optional<ElfAddress> Word(const std::string& code) {
  return FindReturnedWord(std::as_bytes(std::span(code)), kAt, kVariable);
}

TEST(AccessorsTest, Member) {
  // mov (%rdi),%rax; ret
  EXPECT_EQ(Member("\x48\x8b\x07\xc3"s), 0);
  // endbr64; mov 0x48(%rdi),%rax; ret
  EXPECT_EQ(Member("\xf3\x0f\x1e\xfa\x48\x8b\x47\x48\xc3"s), 0x48);
  // mov 0x1cb0(%rdi),%rax; ret
  EXPECT_EQ(Member("\x48\x8b\x87\xb0\x1c\x00\x00\xc3"s), 0x1cb0);
  // push %rbp; mov %rsp,%rbp; mov 0x8(%rdi),%rax; pop %rbp; ret
  EXPECT_EQ(Member("\x55\x48\x89\xe5\x48\x8b\x47\x08\x5d\xc3"s), 8);
}

TEST(AccessorsTest, OtherFunctions) {
  // Without a return, of another register, negative, too far.
  EXPECT_FALSE(Member("\x48\x8b\x07"s));
  EXPECT_FALSE(Member("\x48\x8b\x06\xc3"s));
  EXPECT_FALSE(Member("\x48\x8b\x47\xf8\xc3"s));
  EXPECT_FALSE(Member("\x48\x8b\x87\x00\x00\x01\x00\xc3"s));
  // Through two pointers; of an argument that is another one by then; with
  // another value in the end; after a call.
  EXPECT_FALSE(Member("\x48\x8b\x47\x08\x48\x8b\x40\x08\xc3"s));
  EXPECT_FALSE(Member("\x48\x89\xf7\x48\x8b\x07\xc3"s));
  EXPECT_FALSE(Member("\x48\x8b\x07\x48\xff\xc0\xc3"s));
  EXPECT_FALSE(Member("\xe8\x00\x00\x00\x00\x48\x8b\x07\xc3"s));
  EXPECT_FALSE(Member("\xc3"s));
  EXPECT_FALSE(Member(""s));
}

TEST(AccessorsTest, Word) {
  // mov 0x100(%rip),%rax; ret
  EXPECT_EQ(Word("\x48\x8b\x05\x00\x01\x00\x00\xc3"s), ElfAddress{0x1107});
  // endbr64; lea 0x100(%rip),%rax; mov 0x20(%rax),%rax; ret
  EXPECT_EQ(Word("\xf3\x0f\x1e\xfa\x48\x8d\x05\x00\x01\x00\x00"
                 "\x48\x8b\x40\x20\xc3"s),
            ElfAddress{0x112b});
  // mov slot(%rip),%rax; mov 0x278(%rax),%rax; ret
  EXPECT_EQ(Word("\x48\x8b\x05\x00\x01\x00\x00\x48\x8b\x80\x78\x02\x00\x00"
                 "\xc3"s),
            ElfAddress{0x8278});
}

TEST(AccessorsTest, OtherWords) {
  // An address; a word behind another pointer; what is left in RAX otherwise.
  EXPECT_FALSE(Word("\x48\x8d\x05\x00\x01\x00\x00\xc3"s));
  EXPECT_FALSE(
      Word("\x48\x8b\x05\x00\x01\x00\x00\x48\x8b\x40\x20\x48\x8b\x40"
           "\x20\xc3"s));
  EXPECT_FALSE(Word("\x48\x8b\x05\x00\x01\x00\x00\x31\xc0\xc3"s));
  EXPECT_FALSE(Word("\x48\x8b\x40\x20\xc3"s));
  EXPECT_FALSE(Word("\x48\x8b\x05\x00\x01\x00\x00"s));
}

}  // namespace
}  // namespace ksym
