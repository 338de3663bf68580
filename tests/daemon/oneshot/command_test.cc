// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/command.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace profd {
namespace {

int WaitFor(Command& command) {
  for (;;) {
    if (const auto status = command.Poll()) return *status;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// The command starts only when it gets its go, and its status comes back.
TEST(CommandTest, RunsAfterItsGo) {
  auto command =
      Command::Prepare({"sh", "-c", "exit 3"}, Command::Stdout::kInherit);
  ASSERT_TRUE(command);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(command->Poll(), std::nullopt);
  ASSERT_TRUE(command->Go());
  EXPECT_EQ(DescribeWaitStatus(WaitFor(*command)), "exited with status 3");
}

// A command that does not exist is an error with its name.
TEST(CommandTest, SaysWhyItCannotRun) {
  auto command =
      Command::Prepare({"/no/such/program"}, Command::Stdout::kInherit);
  ASSERT_TRUE(command);
  const auto gone = command->Go();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), ksym::ErrorCode::kNotFound);
  EXPECT_NE(gone.error().message().find("/no/such/program"), std::string::npos);
}

// One that never got its go is reaped, and never ran.
TEST(CommandTest, IsCancelledWithoutItsGo) {
  pid_t pid = -1;
  {
    auto command =
        Command::Prepare({"sleep", "1000"}, Command::Stdout::kInherit);
    ASSERT_TRUE(command);
    pid = command->pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

// The command gets no signal dispositions or masks of ours.
TEST(CommandTest, RestoresSignals) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  auto command = Command::Prepare({"sh", "-c", "kill -TERM $$; exit 0"},
                                  Command::Stdout::kInherit);
  ASSERT_TRUE(command);
  ASSERT_TRUE(command->Go());
  const int status = WaitFor(*command);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(DescribeWaitStatus(status), "was killed by signal 15");
}

}  // namespace
}  // namespace profd
