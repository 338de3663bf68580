// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/raw_frame_text.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "daemon/profile/raw_waker.h"
#include "daemon/profile/wait_reason.h"

namespace profd {
namespace {

std::string WithoutBrackets(std::string_view command) {
  std::string plain(command);
  for (char& c : plain) {
    if (c == ']') c = '_';
  }
  return plain;
}

constexpr RawFrameStyle kStyle = {.plain = &WithoutBrackets};
constexpr RawFrameStyle kThreads = {.with_threads = true,
                                    .plain = &WithoutBrackets};

TEST(RawFrameTextTest, SaysWhyAThreadWaited) {
  // poll() of x86-64.
  const RawFrame frame = {.kind = kWaitReason, .unit = 1, .value = 7};
  EXPECT_EQ(RawFrameText(frame, {}, kStyle), "[blocked: poll]");
}

TEST(RawFrameTextTest, SaysWhoEndedAWait) {
  RawProfile profile;
  RawWaker waker;
  waker.process.pid = 12;
  waker.tid = 13;
  waker.comm = Comm("a]b");
  profile.wakers.emplace(5, waker);
  waker.is_interrupt = true;
  profile.wakers.emplace(6, waker);
  const auto text = [&](WakerId id, const RawFrameStyle& style) {
    return RawFrameText({.kind = kWaker, .value = id}, profile, style);
  };
  EXPECT_EQ(text(5, kStyle), "[woken by a_b, process 12]");
  EXPECT_EQ(text(5, kThreads), "[woken by a_b, process 12, thread 13]");
  EXPECT_EQ(text(6, kThreads), "[woken by interrupt]");
  EXPECT_EQ(text(7, kStyle), kNoWakerMark);
}

TEST(RawFrameTextTest, SaysTheNumberOfOtherKinds) {
  EXPECT_EQ(RawFrameText({.kind = 0x7e}, {}, kStyle), "[frame of kind 126]");
}

}  // namespace
}  // namespace profd
