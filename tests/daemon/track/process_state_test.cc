// SPDX-License-Identifier: Apache-2.0
#include "daemon/track/process_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>

namespace profd {
namespace {

const uint32_t kSelf = static_cast<uint32_t>(::getpid());

// This process is among those that there are.
TEST(ProcessStateTest, ListsProcesses) {
  EXPECT_THAT(ReadProcesses(), testing::Contains(kSelf));
}

// A process that is not there used nothing.
TEST(ProcessStateTest, NobodyUsesNothing) {
  EXPECT_EQ(ReadCpusOf(1u << 30), 0);
}

// A process that spins is busy; none uses more CPUs than it has threads.
TEST(ProcessStateTest, TellsHowBusyItIs) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < end) {
  }
  const double cpus = ReadCpusOf(kSelf);
  EXPECT_GT(cpus, 0);
  EXPECT_LT(cpus, 1.5);
}

}  // namespace
}  // namespace profd
