// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "daemon/service/blocking_queue.h"
#include "daemon/service/interval_clock.h"
#include "daemon/service/log.h"
#include "daemon/service/service_signals.h"
#include "daemon/service/systemd_notify.h"
#include "ksym/base/unique_fd.h"
#include "tests/daemon/service/second.h"

namespace profd {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

// An interval ends at multiples of its length, and when the clock is set.
TEST(IntervalClockTest, IsAlignedAndFollowsTheClock) {
  IntervalClock clock(seconds(10), 1003 * kSecond);
  EXPECT_EQ(clock.UntilNext(1003 * kSecond), seconds(7));
  EXPECT_FALSE(clock.Passed(1010 * kSecond - 1));
  EXPECT_TRUE(clock.Passed(1010 * kSecond));
  EXPECT_FALSE(clock.Passed(1019 * kSecond));
  EXPECT_EQ(clock.UntilNext(1020 * kSecond), seconds(10));
  EXPECT_TRUE(clock.Passed(5 * kSecond));
  EXPECT_FALSE(clock.Passed(6 * kSecond));
  EXPECT_TRUE(clock.Passed(10 * kSecond));
}

// Five messages of a kind come through in a minute, and then how many did not.
TEST(LogLimiterTest, CountsWhatItHoldsBack) {
  LogLimiter limiter;
  const LogLimiter::Clock::time_point begin;
  for (uint64_t i = 0; i < LogLimiter::kMaxPerPeriod; ++i) {
    EXPECT_EQ(limiter.Allow("disk", begin), 0u);
  }
  EXPECT_EQ(limiter.Allow("disk", begin + seconds(1)), std::nullopt);
  EXPECT_EQ(limiter.Allow("disk", begin + seconds(59)), std::nullopt);
  EXPECT_EQ(limiter.Allow("other", begin + seconds(59)), 0u);
  EXPECT_EQ(limiter.Allow("disk", begin + seconds(60)), 2u);
  EXPECT_EQ(limiter.Allow("disk", begin + seconds(61)), 0u);
}

// A queue hands on in order, refuses what is over its bound without waiting,
// and what is in it when it is closed can still be taken.
TEST(BlockingQueueTest, IsBoundedAndDrains) {
  BlockingQueue<int> queue(2);
  int one = 1, two = 2, three = 3;
  EXPECT_TRUE(queue.Push(one));
  EXPECT_TRUE(queue.Push(two));
  EXPECT_FALSE(queue.Push(three));
  EXPECT_EQ(three, 3);
  queue.Close();
  EXPECT_FALSE(queue.Push(three));
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.Pop(), 2);
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

// A taker that waits gets what comes later.
TEST(BlockingQueueTest, WakesTheTaker) {
  BlockingQueue<int> queue(2);
  std::thread giver([&queue] {
    int value = 7;
    EXPECT_TRUE(queue.Push(value));
    queue.Close();
  });
  EXPECT_EQ(queue.Pop(), 7);
  EXPECT_EQ(queue.Pop(), std::nullopt);
  giver.join();
}

// What is sent arrives at the manager's socket as one datagram, also at an
// abstract address.
TEST(SystemdNotifyTest, SendsDatagrams) {
  const std::string name = "ksym-notify-" + std::to_string(::getpid());
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const ksym::UniqueFd manager(::socket(AF_UNIX, SOCK_DGRAM, 0));
  ASSERT_EQ(::bind(manager.get(), reinterpret_cast<sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                          name.size())),
            0);
  const auto notify = SystemdNotify::To("@" + name, "20000000");
  ASSERT_TRUE(notify) << notify.error().message();
  EXPECT_EQ(notify->watchdog(), seconds(20));
  notify->Send("READY=1\nSTATUS=fine");
  std::array<char, 100> buffer = {};
  const ssize_t size =
      ::recv(manager.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  ASSERT_GT(size, 0);
  EXPECT_EQ(std::string(buffer.data(), static_cast<size_t>(size)),
            "READY=1\nSTATUS=fine");
  // A manager that does not read does not stop us.
  for (int i = 0; i < 10'000; ++i) notify->Send("WATCHDOG=1");
}

// Without a manager nothing is sent; an address that is none is an error.
TEST(SystemdNotifyTest, RefusesBadAddresses) {
  const auto none = SystemdNotify::To("", "");
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->enabled());
  EXPECT_FALSE(none->watchdog());
  none->Send("READY=1");
  EXPECT_FALSE(SystemdNotify::To("relative", ""));
  EXPECT_FALSE(SystemdNotify::To("/" + std::string(200, 'x'), ""));
  EXPECT_FALSE(SystemdNotify::To("/nowhere/at/all", ""));
}

// The environment is emptied, so that no child can speak for the service.
TEST(SystemdNotifyTest, TakesTheEnvironment) {
  ::setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
  ::setenv("WATCHDOG_USEC", "1000000", 1);
  EXPECT_FALSE(SystemdNotify::FromEnvironment());
  EXPECT_EQ(::getenv("NOTIFY_SOCKET"), nullptr);
  EXPECT_EQ(::getenv("WATCHDOG_USEC"), nullptr);
}

// Each signal is what it asks for; several come together.
TEST(ServiceSignalsTest, SaysWhatIsAsked) {
  const auto signals = ServiceSignals::Install();
  ASSERT_TRUE(signals) << signals.error().message();
  auto asked = signals->Wait(nanoseconds(0));
  EXPECT_FALSE(asked.stop || asked.reload || asked.write_now);
  ::kill(::getpid(), SIGHUP);
  ::kill(::getpid(), SIGUSR1);
  asked = signals->Wait(seconds(5));
  EXPECT_TRUE(asked.reload && asked.write_now && !asked.stop);
  ::kill(::getpid(), SIGTERM);
  EXPECT_TRUE(signals->Wait(seconds(5)).stop);
}

}  // namespace
}  // namespace profd
