// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/freed_memory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace profd {
namespace {

// Resident pages of files, in kB.
long ResidentOfFiles() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != "RssFile:") continue;
    long kilobytes = 0;
    status >> kilobytes;
    return kilobytes;
  }
  return -1;
}

// Pages of code go, and come back when they are needed: everything still works,
// from this thread's next instruction on.
TEST(FreedMemoryTest, ReturnsFilePages) {
  const long before = ResidentOfFiles();
  ASSERT_GT(before, 0);
  ReturnFilePages();
  EXPECT_LT(ResidentOfFiles(), before);
  ReturnFilePages();
  ReturnUnusedMemory();
  EXPECT_GT(ResidentOfFiles(), 0);
}

}  // namespace
}  // namespace profd
