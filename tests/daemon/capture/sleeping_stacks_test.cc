// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/sleeping_stacks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/base/text.h"
#include "ksym/base/unique_fd.h"

namespace profd {
namespace {

// Some words of a thread that sleeps, and what the kernel says of it.
class SleepingStacksTest : public testing::Test {
 protected:
  SleepingStacksTest() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    read_end_ = ksym::UniqueFd(ends[0]);
    write_end_ = ksym::UniqueFd(ends[1]);
    thread_ = std::thread([this] {
      char byte = 0;
      tid_ = static_cast<uint32_t>(::gettid());
      EXPECT_EQ(::read(read_end_.get(), &byte, 1), 1);
    });
    for (int i = 0; i < 10000 && !Sleeps(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(Sleeps());
  }
  ~SleepingStacksTest() override {
    EXPECT_EQ(::write(write_end_.get(), "x", 1), 1);
    thread_.join();
  }

  bool Sleeps() const {
    if (tid_ == 0) return false;
    return ksym::ReadFile(fmt::format("/proc/{}/syscall", tid_.load()), 128)
        .value_or("")
        .starts_with("0 ");  // in read()
  }

  // As a walk tells the thread now.
  wait_thread_record Thread() const {
    wait_thread_record record = {};
    record.header.type = PROFILE_RECORD_THREAD;
    record.tid = tid_;
    const auto text =
        ksym::ReadFile(fmt::format("/proc/{}/schedstat", tid_.load()), 128);
    std::string_view rest = *text;
    record.running_ns = *ksym::ParseUnsigned(ksym::TakeField(rest, ' '), 10);
    ksym::TakeField(rest, ' ');
    record.runs = static_cast<uint32_t>(
        *ksym::ParseUnsigned(ksym::TakeField(rest, '\n'), 10));
    return record;
  }

  // How many bytes are taken of the stack.
  size_t BytesTaken(const wait_thread_record& thread) {
    profile_copy_record copy = {};
    copy.header.type = PROFILE_RECORD_COPY;
    copy.tid = tid_;
    copy.address = reinterpret_cast<uint64_t>(words_.data());
    copy.end = copy.address + words_.size() * sizeof(words_[0]);
    size_t pieces = 0;
    size_t in_copies = 0;
    const Sampler::RecordTaker take = [&](const profile_record& record,
                                          size_t /*bytes*/) {
      if (record.type == PROFILE_RECORD_PIECE) {
        pieces += reinterpret_cast<const profile_piece_record&>(record).bytes;
      } else if (record.type == PROFILE_RECORD_COPY) {
        in_copies += reinterpret_cast<const profile_copy_record&>(record).bytes;
      }
    };
    SleepingStacks stacks(memory_, take);
    stacks.Take(thread.header, sizeof(thread));
    stacks.Take(copy.header, sizeof(copy));
    EXPECT_EQ(pieces, in_copies);
    return in_copies;
  }

  std::vector<uint64_t> words_ = std::vector<uint64_t>(64, 1);

 private:
  ForeignMemory memory_;
  ksym::UniqueFd read_end_;
  ksym::UniqueFd write_end_;
  std::thread thread_;
  std::atomic<uint32_t> tid_ = 0;
};

TEST_F(SleepingStacksTest, TakesTheStackOfOneThatSleepsOn) {
  EXPECT_EQ(BytesTaken(Thread()), words_.size() * sizeof(words_[0]));
}

// How long it ran is written down at the next tick only.
TEST_F(SleepingStacksTest, LeavesOneThatWasJustChosenToRun) {
  wait_thread_record thread = Thread();
  --thread.runs;
  EXPECT_EQ(BytesTaken(thread), 0u);
}

// The same id, another thread.
TEST_F(SleepingStacksTest, LeavesOneThatRanForAnotherTime) {
  wait_thread_record thread = Thread();
  ++thread.running_ns;
  EXPECT_EQ(BytesTaken(thread), 0u);
}

}  // namespace
}  // namespace profd
