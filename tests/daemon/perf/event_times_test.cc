// SPDX-License-Identifier: Apache-2.0
#include "daemon/perf/event_times.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ksym/base/unique_fd.h"

namespace profd {
namespace {

// An event of this thread that counts nothing, as any user may have.
ksym::UniqueFd OpenDummy() {
  perf_event_attr attr = {};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.exclude_kernel = 1;
  attr.read_format = kEventTimesFormat;
  return ksym::UniqueFd(static_cast<int>(
      ::syscall(SYS_perf_event_open, &attr, /*pid=*/0, /*cpu=*/-1,
                /*group_fd=*/-1, PERF_FLAG_FD_CLOEXEC)));
}

TEST(EventPulse, BeatsWhileTheEventIsEnabled) {
  const ksym::UniqueFd event = OpenDummy();
  if (!event.valid()) GTEST_SKIP() << "no event: " << std::strerror(errno);
  EventPulse pulse;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(pulse.Beats(ReadEventTimes(event.get()))) << i;
  }
  ASSERT_EQ(::ioctl(event.get(), PERF_EVENT_IOC_DISABLE, 0), 0);
  const EventTimes last = ReadEventTimes(event.get());
  EXPECT_GT(last.enabled_ns, 0U);
  EXPECT_EQ(last.running_ns, last.enabled_ns);
  EXPECT_TRUE(pulse.Beats(last));
  EXPECT_FALSE(pulse.Beats(ReadEventTimes(event.get())));
  ASSERT_EQ(::ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0), 0);
  EXPECT_TRUE(pulse.Beats(ReadEventTimes(event.get())));
}

TEST(EventPulse, AnEventThatCannotBeReadIsDead) {
  const EventTimes times = ReadEventTimes(-1);
  EXPECT_EQ(times.enabled_ns, 0U);
  EXPECT_EQ(times.running_ns, 0U);
  EXPECT_FALSE(EventPulse().Beats(times));
}

}  // namespace
}  // namespace profd
