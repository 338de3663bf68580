// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/thread_place.h"

#include <gtest/gtest.h>

#include <string>

namespace ksym {
namespace {

using namespace std::string_literals;
using Kind = CpythonThreadPlace::Kind;

std::optional<CpythonThreadPlace> Find(const std::string& code) {
  return FindReturnedVariable(std::as_bytes(std::span(code)), {0x1000});
}

// endbr64; mov %fs:-32,%rax; ret
TEST(ThreadPlaceTest, LocalExec) {
  EXPECT_EQ(Find("\xf3\x0f\x1e\xfa\x64\x48\x8b\x04\x25\xe0\xff\xff\xff\xc3"s),
            (CpythonThreadPlace{
                .kind = Kind::kNearThread, .address = {}, .distance = -32}));
}

// The module and what is added to its block are found in what a call is told.
TEST(ThreadPlaceTest, Dynamic) {
  const std::string call =
      "\x55\x48\x89\xe5"              // push %rbp; mov %rsp,%rbp
      "\x48\x8d\x3d\x00\x01\x00\x00"  // lea 0x110b(%rip),%rdi: 0x110b
      "\xe8\x00\x00\x00\x00\x5d"s;    // call; pop %rbp
  const CpythonThreadPlace expected = {
      .kind = Kind::kInModule, .address = {0x110b}, .distance = 40};
  EXPECT_EQ(Find(call + "\x48\x8b\x80\x28\x00\x00\x00\xc3"s), expected);
  EXPECT_EQ(Find(call + "\x48\x8b\x40\x28\xc3"s), expected);
  EXPECT_EQ(Find(call + "\x48\x8b\x00\xc3"s)->distance, 0);
  // The general-dynamic model has prefixes, and may call through a slot.
  EXPECT_EQ(Find("\x66\x48\x8d\x3d\x00\x01\x00\x00"
                 "\x66\x66\x48\xe8\x00\x00\x00\x00\x48\x8b\x00\xc3"s),
            (CpythonThreadPlace{
                .kind = Kind::kInModule, .address = {0x1108}, .distance = 0}));
  EXPECT_EQ(Find("\x66\x48\x8d\x3d\x00\x01\x00\x00"
                 "\x66\x48\xff\x15\x00\x00\x00\x00\x48\x8b\x00\xc3"s)
                ->address,
            ElfAddress{0x1108});
}

// mov slot(%rip),%rax; mov %fs:(%rax),%rax, and the same by a descriptor.
TEST(ThreadPlaceTest, ByOffset) {
  EXPECT_EQ(Find("\x48\x8b\x05\x00\x01\x00\x00\x64\x48\x8b\x00\xc3"s),
            (CpythonThreadPlace{
                .kind = Kind::kByOffset, .address = {0x1107}, .distance = 0}));
  EXPECT_EQ(Find("\x48\x8d\x05\x00\x01\x00\x00\xff\x10"
                 "\x64\x48\x8b\x00\xc3"s),
            (CpythonThreadPlace{
                .kind = Kind::kByOffset, .address = {0x110f}, .distance = 0}));
  EXPECT_EQ(Find("\x48\x8d\x05\x00\x01\x00\x00\xff\x10"
                 "\x64\x48\x03\x04\x25\x00\x00\x00\x00\x48\x8b\x40\x08\xc3"s),
            (CpythonThreadPlace{
                .kind = Kind::kByOffset, .address = {0x110f}, .distance = 8}));
}

// Functions that do something else return nothing that is known.
TEST(ThreadPlaceTest, Others) {
  for (const auto& code :
       {""s, "\xc3"s, "\x31\xc0\xc3"s, "\x48\x8b\x00\xc3"s,
        "\xe8\x00\x00\x00\x00\x48\x8b\x00\xc3"s,
        "\x74\x00\x64\x48\x8b\x04\x25\xe0\xff\xff\xff\xc3"s,
        "\x64\x48\x8b\x04\x25"s, "\x64\x48\x8b\x00\xc3"s, "\xff\x10\xc3"s}) {
    EXPECT_EQ(Find(code), std::nullopt);
  }
}

}  // namespace
}  // namespace ksym
