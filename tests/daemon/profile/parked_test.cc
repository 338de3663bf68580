// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/parked.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace profd {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// 100 samples in a second: ten are 100 ms.
class ParkedTest : public testing::Test {
 protected:
  struct Wait {
    uint32_t tid = 0;
    std::string_view function = "Wait";
    std::string_view reason = "[blocked: futex]";
    std::string_view kernel = "futex_wait";
    SampleKindId kind = 1;  // blocked
    uint32_t pid = 1;
  };

  void Add(const Wait& wait, uint64_t ns) {
    builder_.AddSample({.comm = builder_.Intern("app"),
                        .pid = wait.pid,
                        .tid = wait.tid,
                        .user_state = StackState::kWhole,
                        .kernel_state = StackState::kWhole,
                        .kind = wait.kind,
                        .user = Stack({{wait.function, &kUserFrame}}),
                        .kernel = Stack({{wait.kernel, &kKernelFrame},
                                         {wait.reason, &kWaitFrame}}),
                        .count = 1,
                        .value = ns});
  }

  // Which of the samples are parked, in the order in which they were added.
  std::vector<bool> Parked(const std::vector<ThreadLife>& lives) {
    CaptureMetadata metadata;
    metadata.kinds = WaitKinds("sched_switch", 100);
    Profile profile = std::move(builder_).Finish(std::move(metadata));
    found_ = MarkParked(lives, profile);
    std::vector<bool> parked;
    for (const ProfileSample& sample : profile.samples) {
      parked.push_back(sample.parked);
    }
    return parked;
  }

  ParkedTime found_;

 private:
  using Named = std::pair<std::string_view, const FrameKind*>;

  CallStackId Stack(const std::vector<Named>& leaf_first) {
    std::vector<FrameId> frames;
    for (const auto& [name, kind] : leaf_first) {
      frames.push_back(
          builder_.AddFrame({.name = builder_.Intern(name), .kind = kind}));
    }
    return builder_.AddStack(frames);
  }

  // A capture's parts have equal stacks under several ids.
  ProfileBuilder builder_{ProfileBuilder::Parts::kOne};
};

using Bools = std::vector<bool>;

// One that was never woken waits for all of its life.
TEST_F(ParkedTest, IsWhoSleepsAllTheTime) {
  Add({.tid = 5}, kSecond);
  Add({.tid = 6}, kSecond / 2);
  EXPECT_EQ(Parked({{1, 5, kSecond}, {1, 6, kSecond}}), Bools({true, false}));
  EXPECT_EQ(found_, (ParkedTime{.threads = 1, .ns = kSecond}));
}

// Many waits add up where they have one reason and one user stack, whatever
// the kernel does; what the thread does besides is not parked.
TEST_F(ParkedTest, IsWhoWaitsAtOnePlace) {
  Add({.tid = 5, .kernel = "futex_wait"}, kSecond / 2);
  Add({.tid = 5, .kernel = "futex_wait_requeue"}, kSecond * 42 / 100);
  Add({.tid = 5, .function = "Other"}, kSecond * 5 / 100);
  EXPECT_EQ(Parked({{1, 5, kSecond}}), Bools({true, true, false}));
  EXPECT_EQ(found_, (ParkedTime{.threads = 1, .ns = kSecond * 92 / 100}));
}

TEST_F(ParkedTest, IsNobodyWithTwoPlacesOrReasons) {
  Add({.tid = 5, .function = "One"}, kSecond / 2);
  Add({.tid = 5, .function = "Two"}, kSecond / 2);
  Add({.tid = 6, .reason = "[blocked: read]"}, kSecond / 2);
  Add({.tid = 6, .reason = "[blocked: poll]"}, kSecond / 2);
  EXPECT_EQ(Parked({{1, 5, kSecond}, {1, 6, kSecond}}),
            Bools({false, false, false, false}));
  EXPECT_EQ(found_, ParkedTime());
}

// 90 % is not more than that.
TEST_F(ParkedTest, NeedsMoreThanNineTenths) {
  Add({.tid = 5}, kSecond * 90 / 100);
  Add({.tid = 6}, kSecond * 90 / 100 + 1);
  EXPECT_EQ(Parked({{1, 5, kSecond}, {1, 6, kSecond}}), Bools({false, true}));
}

// A thread is known by pid and tid, and programs that it runs one after the
// other are one.
TEST_F(ParkedTest, ThreadsAreApart) {
  Add({.tid = 5}, kSecond * 95 / 100);
  Add({.tid = 5, .pid = 2}, kSecond * 95 / 100);
  EXPECT_EQ(
      Parked({{1, 5, kSecond / 2}, {1, 5, kSecond / 2}, {2, 5, 2 * kSecond}}),
      Bools({true, false}));
}

// A disk, and what nothing ends, are what one looks for; a thread that wants a
// CPU is not at rest.
TEST_F(ParkedTest, IsNobodyWhoIsStuckOrRunnable) {
  Add({.tid = 5, .reason = "[blocked: fsync, D]"}, kSecond);
  Add({.tid = 6, .reason = "[blocked: read, iowait]"}, kSecond);
  Add({.tid = 7, .reason = "[runnable: woken]", .kind = 0}, kSecond);
  EXPECT_EQ(Parked({{1, 5, kSecond}, {1, 6, kSecond}, {1, 7, kSecond}}),
            Bools({false, false, false}));
}

// A sample more or less would decide on a short life.
TEST_F(ParkedTest, NeedsTenSamples) {
  Add({.tid = 5}, kSecond / 10 - 1);
  Add({.tid = 6}, kSecond / 10);
  EXPECT_EQ(Parked({{1, 5, kSecond / 10}, {1, 6, kSecond / 10}}),
            Bools({false, true}));
}

// Captures of older programs do not say how long a thread lived, or which one
// a sample is of.
TEST_F(ParkedTest, NeedsThreadsAndTheirLives) {
  Add({.tid = 5}, kSecond);
  Add({.tid = 0}, kSecond);
  EXPECT_EQ(Parked({{1, 0, kSecond}}), Bools({false, false}));
}

// One frame is in the place of the stacks; numbers, owners and other samples
// stay.
TEST(FoldParkedTest, IsOneFrame) {
  ProfileBuilder builder;
  const auto stack = [&](std::string_view name) {
    const FrameId frame = builder.AddFrame({.name = builder.Intern(name)});
    return builder.AddStack({&frame, 1});
  };
  for (const auto& [tid, parked] :
       {std::pair(5u, true), {6u, true}, {7u, false}}) {
    builder.AddSample({.comm = builder.Intern("app"),
                       .pid = 1,
                       .tid = tid,
                       .user_state = StackState::kBadRead,
                       .kind = 1,
                       .parked = parked,
                       .user = stack("Wait"),
                       .count = 2,
                       .value = tid});
  }
  Profile profile = std::move(builder).Finish({});
  FoldParked(profile);
  std::vector<std::string> texts;
  for (const ProfileSample& sample : profile.samples) {
    EXPECT_FALSE(sample.parked);
    const bool has_user = sample.user_state != StackState::kNone;
    const auto frames = profile.Stack(has_user ? sample.user : sample.kernel);
    ASSERT_EQ(frames.size(), 1u);
    texts.push_back(
        std::string(profile.String(profile.frames[frames[0]].name)) + " " +
        std::to_string(sample.tid) + " " + std::to_string(sample.value));
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"[parked] 5 5", "[parked] 6 6",
                                             "Wait 7 7"}));
}

// Somebody asked who ended it.
TEST(FoldParkedTest, KeepsWakers) {
  ProfileBuilder builder;
  const std::array leaf_first = {
      builder.AddFrame({.name = builder.Intern("--"), .kind = &kWakerFrame}),
      builder.AddFrame(
          {.name = builder.Intern("[blocked: read]"), .kind = &kWaitFrame})};
  const CallStackId kernel = builder.AddStack(leaf_first);
  builder.AddSample({.comm = builder.Intern("app"),
                     .kernel_state = StackState::kWhole,
                     .parked = true,
                     .kernel = kernel,
                     .count = 1,
                     .value = 1});
  Profile profile = std::move(builder).Finish({});
  EXPECT_FALSE(IsFolded(profile, profile.samples[0]));
  FoldParked(profile);
  ASSERT_EQ(profile.samples.size(), 1u);
  EXPECT_EQ(profile.samples[0].kernel, kernel);
}

// Chance can make two places of one thread more than its life. It is one
// thread.
TEST_F(ParkedTest, CountsAThreadOnce) {
  Add({.tid = 5, .function = "A"}, kSecond);
  Add({.tid = 5, .function = "B"}, kSecond);
  Add({.tid = 6, .function = "A"}, kSecond);
  EXPECT_EQ(Parked({{1, 5, kSecond}, {1, 6, kSecond}}),
            Bools({true, true, true}));
  EXPECT_EQ(found_, (ParkedTime{.threads = 2, .ns = 3 * kSecond}));
}

}  // namespace
}  // namespace profd
