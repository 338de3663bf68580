// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/runtime_names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace profd {
namespace {

constexpr ksym::ProcessId kFirst = {.pid = 1, .exec_count = 0, .start_ns = 1};
constexpr ksym::ProcessId kSecond = {.pid = 2, .exec_count = 0, .start_ns = 1};

ksym::CpythonCode Code(const std::string& name) {
  // Four instructions on each of two lines.
  return {.name = name,
          .file = "app.py",
          .first_line = 10,
          .line_form = ksym::CpythonLayout::LineTable::kLocations,
          .line_table = std::string("\x83\x01\xdb\x01\x01", 5)};
}

TEST(RuntimeNamesTest, FramesAreNamedByInstruction) {
  RuntimeNames names;
  names.Add(kFirst, 7, Code("f"));
  const RuntimeFrameId first = names.FrameOf(7, 0);
  EXPECT_EQ(names.Get(first),
            (RuntimeFrame{
                .name = "f", .file = "app.py", .first_line = 10, .line = 10}));
  EXPECT_EQ(names.FrameOf(7, 3), first);
  EXPECT_EQ(names.Get(names.FrameOf(7, 4)).line, 11u);
  EXPECT_EQ(names.Get(names.FrameOf(7, 8)).line, 0u);
}

// A function of which very many instructions are asked for has the same frames
// as before, whatever was forgotten of them meanwhile.
TEST(RuntimeNamesTest, FramesOfManyInstructionsStayTheSame) {
  RuntimeNames names;
  names.Add(kFirst, 7, Code("f"));
  const RuntimeFrameId first = names.FrameOf(7, 0);
  const RuntimeFrameId second = names.FrameOf(7, 4);
  const RuntimeFrameId none = names.FrameOf(7, 8);
  const auto last = static_cast<uint32_t>(3 * RuntimeNames::kMaxIndexes);
  for (uint32_t index = last; index > 8; --index) {
    EXPECT_EQ(names.FrameOf(7, index), none);
  }
  EXPECT_EQ(names.FrameOf(7, 0), first);
  EXPECT_EQ(names.FrameOf(7, 4), second);
  EXPECT_EQ(names.FrameOf(7, 7), second);
}

// Frames are the same only if all that is known of them is.
TEST(RuntimeNamesTest, FramesThatDifferHaveOtherNumbers) {
  RuntimeNames names;
  const RuntimeFrame frame = {.name = "f", .file = "app.py"};
  const std::vector<RuntimeFrame> others = {
      {.name = "g", .file = "app.py"},
      {.name = "f", .file = "other.py"},
      {.name = "f", .file = "app.py", .first_line = 1},
      {.name = "f", .file = "app.py", .line = 1},
      {.name = "f", .file = "app.py", .line_is_near = true},
      {.name = "f", .file = "app.py", .is_interpreted = true},
      {.name = "f", .file = "app.py", .caller = 1}};
  const RuntimeFrameId id = names.IdOf(frame);
  for (const RuntimeFrame& other : others) {
    EXPECT_NE(names.IdOf(other), id);
    EXPECT_EQ(names.Get(names.IdOf(other)), other);
  }
  EXPECT_EQ(names.IdOf(frame), id);
  EXPECT_EQ(names.Get(id), frame);
}

// Code of several processes that is the same makes the same frames, and frames
// stay when a process goes.
TEST(RuntimeNamesTest, ProcessesShareFrames) {
  RuntimeNames names;
  names.Add(kFirst, 7, Code("f"));
  names.Add(kSecond, 8, Code("f"));
  const RuntimeFrameId frame = names.FrameOf(7, 0);
  EXPECT_EQ(names.FrameOf(8, 0), frame);
  names.Forget(kFirst);
  EXPECT_FALSE(names.contains(7));
  EXPECT_TRUE(names.contains(8));
  EXPECT_EQ(names.Get(frame).name, "f");
  names.Forget(kSecond);
  EXPECT_EQ(names.statistics().code_bytes, 0u);
}

// What has no name is counted each time.
TEST(RuntimeNamesTest, UnknownCodeHasNoName) {
  RuntimeNames names;
  EXPECT_EQ(names.Get(names.FrameOf(7, 0)).name, "");
  EXPECT_EQ(names.statistics().frames_unnamed, 1u);
}

// Memory is bounded, and the bound is counted where it bites.
TEST(RuntimeNamesTest, NamesAreBounded) {
  RuntimeNames names;
  ksym::CpythonCode large = Code("f");
  large.line_table.resize(RuntimeNames::kMaxBytes / 2);
  names.Add(kFirst, 1, large);
  names.Add(kSecond, 2, large);
  EXPECT_EQ(names.statistics().codes, 1u);
  EXPECT_EQ(names.statistics().codes_refused, 1u);
  // What did not find room may be sent again.
  EXPECT_EQ(names.TakeDropped(), std::vector<uint64_t>{2});
  names.Forget(kFirst);
  names.Add(kSecond, 2, large);
  EXPECT_TRUE(names.contains(2));
}

// A process that makes functions without end loses its own, those that were not
// used for longest, and no other process loses any.
TEST(RuntimeNamesTest, WhatIsUsedLeastGoes) {
  RuntimeNames names;
  ksym::CpythonCode large = Code("f");
  large.line_table.resize(RuntimeNames::kMaxBytes / 8);
  names.Add(kSecond, 1000, Code("g"));
  for (uint64_t code = 1; code <= 20; ++code) {
    names.ForgetOldFrames();
    names.Add(kFirst, code, large);
    names.FrameOf(1, 0);
    EXPECT_TRUE(names.contains(code));
  }
  EXPECT_TRUE(names.contains(1));
  EXPECT_FALSE(names.contains(2));
  EXPECT_TRUE(names.contains(1000));
  EXPECT_LE(names.statistics().code_bytes, RuntimeNames::kMaxBytes);
  const auto dropped = names.TakeDropped();
  EXPECT_EQ(dropped.size(), names.statistics().codes_refused);
  EXPECT_EQ(dropped.front(), 2u);
}

// Frames of the drain before are still there when old ones are forgotten; new
// ones have other numbers.
TEST(RuntimeNamesTest, OldFramesAreForgottenLate) {
  RuntimeNames names;
  RuntimeFrameId first = 0;
  const auto fill = [&](const std::string& prefix) {
    for (size_t i = 0; i <= RuntimeNames::kMaxFrames; ++i) {
      const uint64_t code = i + 1;
      names.Add(kFirst, code, Code(prefix + std::to_string(i)));
      const RuntimeFrameId id = names.FrameOf(code, 0);
      if (i == 0) first = id;
      names.Forget(kFirst);
    }
  };
  fill("a");
  const RuntimeFrameId old = first;
  names.ForgetOldFrames();
  EXPECT_EQ(names.Get(old).name, "a0");
  fill("b");
  EXPECT_NE(first, old);
  names.ForgetOldFrames();
  EXPECT_EQ(names.Get(old).name, "");
  EXPECT_EQ(names.Get(first).name, "b0");
}

}  // namespace
}  // namespace profd
