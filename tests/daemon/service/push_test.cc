#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "daemon/service/push_client.h"
#include "daemon/service/push_sender.h"
#include "ksym/base/file.h"

namespace profd {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr uint64_t kSecond = 1'000'000'000;

// Twice as long after each failure, of which a random half, up to a minute.
TEST(BackoffTest, GrowsToAMinuteAndStartsAnew) {
  Backoff backoff(1);
  milliseconds whole(1000);
  for (int i = 0; i < 100; ++i) {
    const milliseconds wait = backoff.Next();
    EXPECT_GE(wait, whole / 2) << i;
    EXPECT_LE(wait, whole) << i;
    whole = std::min(whole * 2, milliseconds(60'000));
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next(), milliseconds(1000));
  EXPECT_NE(Backoff(2).Next(), Backoff(3).Next());
}

PushEntry Entry(uint64_t second, size_t bytes) {
  return {.begin_unix_ns = second * kSecond,
          .end_unix_ns = (second + 10) * kSecond,
          .frequency_hz = 19,
          .hostname = "h",
          .pprof = std::string(bytes, '\n')};
}

// What is written is read back; anything shorter, or from others, is refused.
TEST(PushEntryTest, RoundTrip) {
  const std::string text = EncodePushEntry(Entry(7, 3));
  const auto entry = DecodePushEntry(text);
  ASSERT_TRUE(entry) << entry.error().message();
  EXPECT_EQ(entry->begin_unix_ns, 7 * kSecond);
  EXPECT_EQ(entry->end_unix_ns, 17 * kSecond);
  EXPECT_EQ(entry->frequency_hz, 19u);
  EXPECT_EQ(entry->hostname, "h");
  EXPECT_EQ(entry->pprof, "\n\n\n");
  for (size_t size = 0; size + 3 <= text.size(); ++size) {
    EXPECT_FALSE(DecodePushEntry(text.substr(0, size))) << size;
  }
  EXPECT_FALSE(DecodePushEntry("x" + text));
}

class PushSenderTest : public testing::Test {
 protected:
  PushSenderTest() {
    std::string pattern = (fs::temp_directory_path() / "push.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~PushSenderTest() override { fs::remove_all(folder_); }

  // To a port on which nobody listens.
  std::unique_ptr<PushSender> Start(uint64_t max_bytes) {
    const PushTarget target = {.url = "http://127.0.0.1:1/"};
    auto sender = PushSender::Open(target, {folder_, max_bytes}, counters_);
    EXPECT_TRUE(sender) << sender.error().message();
    auto client = PushClient::Make(target);
    EXPECT_TRUE(client) << client.error().message();
    (*sender)->SendBy(std::move(*client));
    return std::move(*sender);
  }

  std::string folder_;
  ServiceCounters counters_;
};

// What does not fit is dropped and counted, the rest waits for the next run,
// as what another run has left half written does not.
TEST_F(PushSenderTest, SpoolIsBoundedAndStays) {
  constexpr uint64_t kMost = 100'000;
  auto sender = Start(kMost);
  for (uint64_t i = 0; i < 10; ++i) sender->Add(Entry(1000 + i, 30'000));
  EXPECT_EQ(counters_.push_dropped, 7u);
  EXPECT_EQ(counters_.push_waiting, 3u);
  EXPECT_GT(counters_.push_waiting_bytes, 90'000u);
  sender.reset();
  EXPECT_EQ(counters_.push_sent, 0u);
  EXPECT_EQ(counters_.push_waiting, 0u);
  sender = Start(kMost);
  EXPECT_EQ(counters_.push_waiting, 3u);
}

// Where the disk fails profiles are kept in memory, a few of them.
TEST_F(PushSenderTest, KeepsAFewWithoutDisk) {
  auto sender = Start(1 << 20);
  fs::remove_all(folder_);
  ASSERT_TRUE(ksym::AtomicFile::Create(folder_)->Commit());
  for (uint64_t i = 0; i < 12; ++i) sender->Add(Entry(1000 + i, 10));
  // One is perhaps being sent.
  EXPECT_GE(counters_.push_waiting, 7u);
  EXPECT_GE(counters_.push_dropped, 3u);
  EXPECT_LE(counters_.push_dropped, 4u);
}

// A file that is no profile does not keep those behind it.
TEST_F(PushSenderTest, PassesOverRubbish) {
  const std::string day =
      folder_ + "/" + FolderOf({.url = "http://127.0.0.1:1/"}) + "/2001/01/01";
  fs::create_directories(day);
  auto file = ksym::AtomicFile::Create(day + "/20010101T000000.000Z.push");
  ASSERT_TRUE(file && file->Write("rubbish") && file->Commit());
  auto sender = Start(1 << 20);
  for (int i = 0; i < 500 && counters_.push_dropped == 0; ++i) {
    ::usleep(10'000);
  }
  EXPECT_EQ(counters_.push_dropped, 1u);
  EXPECT_EQ(counters_.push_waiting, 0u);
}

}  // namespace
}  // namespace profd
