// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/thread_records.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "bpf/waiting_abi.h"

namespace profd {
namespace {

// A walk that gives a thread's record at each read, or an error where the
// thread is 0.
class FakeWalk {
 public:
  explicit FakeWalk(std::vector<uint32_t> threads, int error = EAGAIN)
      : threads_(std::move(threads)), error_(error) {}

  ksym::Status Take(std::vector<uint32_t>& taken) {
    return TakeThreadRecords(
        [this](std::span<std::byte> out) { return Read(out); },
        [&](const profile_record& record, size_t /*bytes*/) {
          taken.push_back(
              reinterpret_cast<const wait_thread_record&>(record).tid);
        });
  }

 private:
  ssize_t Read(std::span<std::byte> out) {
    if (at_ == threads_.size()) return 0;
    wait_thread_record record = {};
    record.header.type = PROFILE_RECORD_THREAD;
    record.tid = threads_[at_++];
    if (record.tid == 0) {
      errno = error_;
      return -1;
    }
    std::memcpy(out.data(), &record, sizeof(record));
    return sizeof(record);
  }

  std::vector<uint32_t> threads_;
  int error_;
  size_t at_ = 0;
};

// The kernel says so behind a million threads that are not asked for.
TEST(ThreadRecordsTest, GoesOnWhereTheKernelSaysAgain) {
  std::vector<uint32_t> taken;
  EXPECT_TRUE(FakeWalk({0, 5, 0, 0, 6}).Take(taken));
  EXPECT_EQ(taken, (std::vector<uint32_t>{5, 6}));
}

TEST(ThreadRecordsTest, DoesNotTryForEver) {
  std::vector<uint32_t> taken;
  EXPECT_FALSE(FakeWalk(std::vector<uint32_t>(1000, 0)).Take(taken));
}

TEST(ThreadRecordsTest, EndsWithAnotherError) {
  std::vector<uint32_t> taken;
  EXPECT_FALSE(FakeWalk({5, 0, 6}, EIO).Take(taken));
  EXPECT_EQ(taken, (std::vector<uint32_t>{5}));
}

}  // namespace
}  // namespace profd
