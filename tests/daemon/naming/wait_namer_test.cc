// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/wait_namer.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "daemon/profile/syscall_names.h"
#include "daemon/profile/wait_text.h"

namespace profd {
namespace {

WaitReason In(uint32_t call, uint16_t state) {
  return {.calls = WaitCalls::kX8664, .call = call, .state = state};
}

// Where nobody saw why a thread wants a CPU, it just does.
TEST(WaitTextOfUnseen, SaysNoReason) {
  WaitReason reason = {.runnable = true, .is_unseen = true};
  EXPECT_EQ(WaitText(reason), "[runnable]");
  reason.is_new = true;
  EXPECT_EQ(WaitText(reason), "[runnable: new]");
}

TEST(WaitNamerTest, SaysTheSystemCall) {
  EXPECT_EQ(WaitText(In(202, 0x1)), "[blocked: futex]");
  // Sleeps may be frozen (TASK_FREEZABLE).
  EXPECT_EQ(WaitText(In(230, 0x2001)), "[blocked: clock_nanosleep]");
  EXPECT_EQ(WaitText(In(58, 0x102)), "[blocked: vfork, D]");
  WaitReason disk = In(74, 0x2);
  disk.io = true;
  EXPECT_EQ(WaitText(disk), "[blocked: fsync, iowait]");
}

TEST(WaitNamerTest, SaysWhatIsNoSystemCall) {
  EXPECT_EQ(WaitText(In(WaitReason::kNoCall, 0x2)), "[blocked: page fault, D]");
  EXPECT_EQ(WaitText(In(WaitReason::kNoCall, 0x1)),
            "[blocked: no system call]");
  EXPECT_EQ(WaitText(In(0, 0x104)), "[blocked: stopped]");
  EXPECT_EQ(WaitText(In(0, 0x108)), "[blocked: traced]");
  EXPECT_EQ(WaitText({.state = 0x402}), "[blocked: kernel thread]");
  EXPECT_EQ(WaitText({.state = 0x2}), "[blocked: kernel thread, D]");
}

TEST(WaitNamerTest, GuessesNoName) {
  EXPECT_EQ(WaitText(In(400, 1)), "[blocked: system call 400]");
  EXPECT_EQ(WaitText(In(5000, 1)), "[blocked: system call 5000]");
  EXPECT_EQ(WaitText({.calls = WaitCalls::kOther, .call = 240, .state = 1}),
            "[blocked: 32-bit call 240]");
}

TEST(WaitNamerTest, SaysWhyAThreadWantsACpu) {
  WaitReason reason = {.calls = WaitCalls::kX8664, .call = 7, .runnable = true};
  EXPECT_EQ(WaitText(reason), "[runnable: woken]");
  reason.preempted = true;
  EXPECT_EQ(WaitText(reason), "[runnable: preempted]");
  reason.call = 24;
  EXPECT_EQ(WaitText(reason), "[runnable: yield]");
  reason.quota = true;
  EXPECT_EQ(WaitText(reason), "[runnable: quota]");
  reason.is_new = true;
  EXPECT_EQ(WaitText(reason), "[runnable: new]");
}

TEST(WaitNamerTest, FramesOfAnyNumbersAreRead) {
  const WaitReason reason = WaitReasonOf(
      {.kind = kWaitReason, .unit = 99, .value = 0xffffffffffffffff});
  EXPECT_EQ(reason.calls, WaitCalls::kOther);
  EXPECT_EQ(WaitText(reason), "[runnable: new]");
  EXPECT_EQ(WaitReasonOf({.unit = 1, .value = 0x0008'0002'0000'004au}).call,
            74u);
}

TEST(WaitNamerTest, TheTableHasTheKernelsNumbers) {
#if defined(__x86_64__)
  EXPECT_EQ(SyscallNameX8664(SYS_futex), "futex");
  EXPECT_EQ(SyscallNameX8664(SYS_rseq), "rseq");
  EXPECT_EQ(SyscallNameX8664(SYS_pidfd_send_signal), "pidfd_send_signal");
  EXPECT_EQ(SyscallNameX8664(SYS_io_uring_enter), "io_uring_enter");
#endif
  EXPECT_EQ(SyscallNameX8664(0xffffffff), "");
}

}  // namespace
}  // namespace profd
