// SPDX-License-Identifier: Apache-2.0
// Names of the kernel's frames, and of who woke a thread that waited there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/naming/kernel_names.h"
#include "tests/daemon/naming/resolve_fixture.h"

namespace profd {
namespace {

using testing::ElementsAre;

using ResolveKernelTest = ResolveFixture;

// The first frame is looked up where it is, a return address in its call: at
// a function's first byte the one names it and the other its predecessor.
TEST_F(ResolveKernelTest, LooksReturnAddressesUpInTheCall) {
  resolver_.SetKernelSymbols(timeline_);
  Sample({}, {0xffffffff81001000, 0xffffffff81001000, 0xffffffff81001001});
  const Profile profile = Resolve();
  ASSERT_EQ(profile.samples.size(), 1u);
  EXPECT_THAT(Names(profile, profile.samples[0].kernel),
              ElementsAre("second", "first", "second"));
}

// An interrupt's entry code has no caller: the frame below it is where the CPU
// was, perhaps at a function's first byte. A function that only calls on
// another stack has one.
TEST_F(ResolveKernelTest, LooksInterruptedCodeUpWhereItIs) {
  for (const char* entry :
       {"asm_sysvec_apic_timer_interrupt", "asm_common_interrupt",
        "asm_exc_page_fault", "asm_spurious_interrupt",
        "asm_fred_entrypoint_kernel"}) {
    const ksym::KernelTimeline timeline =
        Timeline(std::string(kTable) + "ffffffff81004000 T " + entry +
                 "\nffffffff81004100 T asm_call_irq_on_stack\n"
                 "ffffffff81004200 T _einittext\n");
    resolver_.SetKernelSymbols(timeline);
    raw_ = {};
    Sample({}, {0xffffffff81001000, 0xffffffff81004010, 0xffffffff81001000,
                0xffffffff81001000, 0xffffffff81004110, 0xffffffff81001000,
                0xffffffff81004010, 0xffffffff81001000});
    const Profile profile = Resolve();
    EXPECT_THAT(Names(profile, profile.samples[0].kernel),
                ElementsAre("second", entry, "second", "first",
                            "asm_call_irq_on_stack", "first", entry, "second"));
  }
}

// Modules are in brackets; a gap has no name.
TEST_F(ResolveKernelTest, NamesModulesAndGaps) {
  resolver_.SetKernelSymbols(timeline_);
  Sample({}, {0xffffffffc0001004, 0xffffffff90000000});
  const Profile profile = Resolve();
  ASSERT_EQ(profile.frames.size(), 2u);
  EXPECT_EQ(profile.String(profile.frames[0].name), "module_function");
  EXPECT_EQ(profile.String(profile.frames[0].object), "[some_module]");
  EXPECT_EQ(profile.String(profile.frames[1].name), "[unknown]");
  EXPECT_EQ(profile.frames[1].reason, ksym::Unresolved::kNoSymbol);
}

// A BPF program prints without its tag, which becomes the build-id; a name
// that only looks like one stays as it is.
TEST_F(ResolveKernelTest, SplitsTheTagOffBpfPrograms) {
  timeline_.Apply({ksym::KernelSymbolChange::Kind::kAdded,
                   ksym::Address{0xffffffffd0000000}, 0x100,
                   "bpf_prog_0123456789abcdef_my_prog", "bpf"});
  timeline_.Apply({ksym::KernelSymbolChange::Kind::kAdded,
                   ksym::Address{0xffffffffd0001000}, 0x100,
                   "bpf_prog_get_type", "bpf"});
  timeline_.Apply({ksym::KernelSymbolChange::Kind::kAdded,
                   ksym::Address{0xffffffffd0002000}, 0x100,
                   "bpf_prog_0123456789abcdef", "bpf"});
  resolver_.SetKernelSymbols(timeline_);
  Sample({}, {0xffffffffd0000010, 0xffffffffd0001010, 0xffffffffd0002010});
  const Profile profile = Resolve();
  EXPECT_THAT(Names(profile, profile.samples[0].kernel),
              ElementsAre("bpf_prog_my_prog", "bpf_prog_get_type",
                          "bpf_prog_0123456789abcdef"));
  EXPECT_EQ(profile.String(profile.frames[0].build_id), "0123456789abcdef");
  EXPECT_EQ(profile.String(profile.frames[0].object), "[bpf]");
  EXPECT_EQ(profile.frames[0].kind, &kBpfFrame);
}

// Two programs at one place within the interval: no name, and why.
TEST_F(ResolveKernelTest, ExplainsAnAmbiguousAddress) {
  for (const char* name : {"bpf_prog_a", "bpf_prog_b"}) {
    timeline_.Apply({ksym::KernelSymbolChange::Kind::kAdded,
                     ksym::Address{0xffffffffd0000000}, 0x100, name, "bpf"});
  }
  resolver_.SetKernelSymbols(timeline_);
  Sample({}, {0xffffffffd0000010});
  const Profile profile = Resolve();
  EXPECT_EQ(profile.String(profile.frames[0].name), "[unknown]");
  EXPECT_EQ(profile.frames[0].reason, ksym::Unresolved::kAmbiguous);
}

// A waiting thread's stack is followed by a divider and by who ended the wait:
// its command, its user's frames and the kernel's up to what woke it.
TEST_F(ResolveKernelTest, NamesWakers) {
  const ksym::KernelTimeline timeline = Timeline(
      "ffffffff81000000 T try_to_wake_up\n"
      "ffffffff81001000 T wake_up_q\n"
      "ffffffff81002000 T pipe_read\n"
      "ffffffff81003000 T hrtimer_wakeup\n");
  resolver_.SetKernelSymbols(timeline);
  raw_.images[self_] = {.id = self_, .mappings = {}};
  const StackId waking = AddStack({0xffffffff81000001, 0xffffffff81001001});
  raw_.wakers[20] = {.process = self_,
                     .comm = Comm("writer"),
                     .user_stack = AddStack({0x3000, 0x1001}),
                     .kernel_stack = waking};
  raw_.wakers[21] = {
      .is_interrupt = true,
      .comm = {},
      .kernel_stack = AddStack({0xffffffff81000001, 0xffffffff81003001})};
  const RawFrame read = {.value = 0xffffffff81002001};
  const auto kernel_names = [&](WakerId id) {
    raw_.samples.clear();
    Sample({}, {});
    raw_.samples[0].kernel_stack = AddMixedStack(
        {read, {.kind = kWaker, .value = id}, {.kind = kWaitReason}});
    TrampolineNames user;
    ProfileBuilder builder;
    resolver_.Add(raw_, user, builder);
    const Profile profile = std::move(builder).Finish(CaptureMetadata());
    std::vector<std::string> names =
        Names(profile, profile.samples.at(0).kernel);
    std::ranges::reverse(names);
    return names;
  };
  const std::string reason = "[blocked: kernel thread]";
  EXPECT_THAT(kernel_names(20),
              ElementsAre(reason, "pipe_read", "--", "writer",
                          "py::f:/srv/app.py", "loop", "wake_up_q"));
  EXPECT_THAT(kernel_names(21), ElementsAre(reason, "pipe_read", "--",
                                            "[woken by interrupt: timer]"));
  for (const WakerId unknown : {WakerId{0}, WakerId{99}}) {
    EXPECT_THAT(kernel_names(unknown),
                ElementsAre(reason, "pipe_read", "--", "[waker unknown]"));
  }
  // A thread can call itself as the marks are called.
  for (const std::string mark : {"--", "[waker unknown]"}) {
    raw_.wakers[20].comm = Comm(mark);
    EXPECT_EQ(kernel_names(20).at(3), "_" + mark.substr(1));
  }
  raw_.wakers[20].comm = Comm("writer");
  // A file can say that a waker has a waker, and that this is itself.
  raw_.wakers[20].kernel_stack = AddMixedStack(
      {read, {.kind = kWaker, .value = 20}, {.kind = kWaitReason}});
  EXPECT_THAT(kernel_names(20),
              ElementsAre(reason, "pipe_read", "--", "writer",
                          "py::f:/srv/app.py", "loop", reason, "pipe_read"));
}

// A waiting thread has one stack at one place, be it sampled in the scheduler,
// with the frames of what sampled it, or walked while it slept, for which the
// kernel leaves the scheduler's functions out. Who holds what it wants stays.
TEST_F(ResolveKernelTest, EndsWaitsAtWhatCalledTheScheduler) {
  const ksym::KernelTimeline timeline = Timeline(
      "ffffffff81000000 T bpf_trampoline\n"
      "ffffffff81001000 T __schedule\n"
      "ffffffff81002000 T schedule\n"
      "ffffffff81003000 T schedule_timeout\n"
      "ffffffff81004000 T wait_for_completion\n"
      "ffffffff81005000 T kernel_wait4\n");
  resolver_.SetKernelSymbols(timeline);
  const auto names_of = [&](const std::vector<uint64_t>& functions) {
    std::vector<RawFrame> frames;
    for (const uint64_t function : functions) {
      frames.push_back({.value = 0xffffffff81000001 + function * 0x1000});
    }
    frames.push_back({.kind = kWaitReason});
    raw_.samples.clear();
    Sample({}, {});
    raw_.samples[0].kernel_stack = AddMixedStack(frames);
    const Profile profile = Resolve();
    std::vector<std::string> names =
        Names(profile, profile.samples.at(0).kernel);
    names.pop_back();  // the reason
    return names;
  };
  EXPECT_THAT(names_of({0, 1, 2, 3, 5}), ElementsAre("kernel_wait4"));
  EXPECT_THAT(names_of({1, 2, 5}), ElementsAre("kernel_wait4"));
  EXPECT_THAT(names_of({2, 5}), ElementsAre("kernel_wait4"));
  EXPECT_THAT(names_of({5}), ElementsAre("kernel_wait4"));
  EXPECT_THAT(names_of({0, 1, 2, 4, 5}),
              ElementsAre("wait_for_completion", "kernel_wait4"));
  // Not at the leaf, and so no part of it.
  EXPECT_THAT(names_of({1, 5, 2}), ElementsAre("kernel_wait4", "schedule"));
  EXPECT_THAT(names_of({5, 2, 1}), ElementsAre());
}

// Without symbols every kernel frame is the kernel.
TEST_F(ResolveKernelTest, FoldsAHiddenKernel) {
  resolver_.SetNoKernelSymbols(ksym::Unresolved::kNoPermission);
  Sample({}, {0xffffffff81001000, 0xffffffff81000500});
  const Profile profile = Resolve();
  EXPECT_THAT(Names(profile, profile.samples[0].kernel),
              ElementsAre("[kernel]", "[kernel]"));
  EXPECT_EQ(profile.frames[0].reason, ksym::Unresolved::kNoPermission);
}

// A capture says why it has none, and its frames say the same.
TEST_F(ResolveKernelTest, SaysWhyThereAreNoSymbols) {
  for (const auto& [state, reason] :
       {std::pair{KernelSymbolsState::kNoPermission,
                  ksym::Unresolved::kNoPermission},
        std::pair{KernelSymbolsState::kUnreadable,
                  ksym::Unresolved::kMalformed},
        std::pair{KernelSymbolsState::kNotInTime,
                  ksym::Unresolved::kNotInTime}}) {
    RawCapture capture;
    capture.kernel_symbols_state = state;
    const auto names = KernelNames::OfCapture(capture);
    UseKernelNames(names, resolver_);
    raw_ = {};
    Sample({}, {0xffffffff81001000});
    EXPECT_EQ(Resolve().frames[0].reason, reason);
  }
}

}  // namespace
}  // namespace profd
