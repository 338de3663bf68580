// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/end_with_parent.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "ksym/base/unique_fd.h"

namespace ksym {
namespace {

constexpr int kWentOn = 7;

// What becomes of a process that is to end with `parent`, and waits no longer
// than that takes.
int StatusOfChildOf(pid_t parent) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    EndWithParent(parent);
    ::_exit(kWentOn);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return status;
}

// A process whose parent lives goes on; one whose parent ended before it asked
// to be told does not.
TEST(EndWithParentTest, LooksWhetherTheParentIsThere) {
  const int alive = StatusOfChildOf(::getpid());
  EXPECT_TRUE(WIFEXITED(alive) && WEXITSTATUS(alive) == kWentOn);
  const int gone = StatusOfChildOf(::getpid() + 1);
  EXPECT_TRUE(WIFEXITED(gone) && WEXITSTATUS(gone) != kWentOn);
}

// A parent that is killed takes its child along: the pipe has no writer then.
TEST(EndWithParentTest, EndsLater) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const pid_t self = ::getpid();
    if (::fork() == 0) {
      EndWithParent(self);
      const uint8_t ready = 1;
      if (::write(writer.get(), &ready, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    for (;;) ::pause();
  }
  writer.Reset();
  uint8_t byte = 0;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 1);
  ::kill(parent, SIGKILL);
  EXPECT_EQ(::waitpid(parent, nullptr, 0), parent);
  EXPECT_EQ(::read(reader.get(), &byte, 1), 0);
}

}  // namespace
}  // namespace ksym
