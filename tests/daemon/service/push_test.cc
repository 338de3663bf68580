// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "daemon/service/push_client.h"
#include "daemon/service/push_connection.h"
#include "daemon/service/push_sender.h"
#include "ksym/base/file.h"
#include "ksym/base/unique_fd.h"
#include "tests/daemon/service/loopback_listener.h"
#include "tests/daemon/service/second.h"

namespace profd {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

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
          .body = std::string(bytes, '\n')};
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
  EXPECT_EQ(entry->body, "\n\n\n");
  for (size_t size = 0; size + 3 <= text.size(); ++size) {
    EXPECT_FALSE(DecodePushEntry(text.substr(0, size))) << size;
  }
  EXPECT_FALSE(DecodePushEntry("x" + text));
}

// A receiver that answers one request with what it is told to, and then with
// the end of it, over and over, up to 64 MiB.
class FakeReceiver {
 public:
  explicit FakeReceiver(std::string answer, std::string endless = {},
                        milliseconds pause = {})
      : answer_(std::move(answer)),
        endless_(std::move(endless)),
        pause_(pause) {
    thread_ = std::thread([this] { Serve(); });
  }
  ~FakeReceiver() {
    listener_.Stop();
    thread_.join();
  }
  FakeReceiver(const FakeReceiver&) = delete;
  FakeReceiver& operator=(const FakeReceiver&) = delete;

  std::string url(std::string_view path,
                  std::string_view scheme = "http") const {
    return std::string(scheme) + "://" + listener_.address() +
           std::string(path);
  }
  // After the client's end.
  std::string request() {
    listener_.Stop();
    if (thread_.joinable()) thread_.join();
    thread_ = std::thread([] {});
    return request_;
  }
  size_t sent_bytes() const { return sent_bytes_; }

 private:
  void Serve() {
    const ksym::UniqueFd fd = listener_.Accept();
    if (!fd.valid()) return;
    ReadRequest(fd.get());
    if (!Send(fd.get(), answer_)) return;
    constexpr size_t kMax = size_t{64} << 20;
    while (!endless_.empty() && sent_bytes_ < kMax) {
      if (!Send(fd.get(), endless_)) return;
      std::this_thread::sleep_for(pause_);
    }
  }
  void ReadRequest(int fd) {
    std::array<char, 4096> buffer = {};
    while (!request_.ends_with("END")) {
      const ssize_t size = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (size <= 0) return;
      request_.append(buffer.data(), static_cast<size_t>(size));
      if (request_.ends_with("--\r\n")) return;  // of a form
      if (request_.starts_with('\x16')) return;  // a client's hello of TLS
    }
  }
  bool Send(int fd, const std::string& text) {
    const ssize_t size = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (size > 0) sent_bytes_ += static_cast<size_t>(size);
    return size == static_cast<ssize_t>(text.size());
  }

  const std::string answer_;
  const std::string endless_;
  const milliseconds pause_;
  const LoopbackListener listener_{1};
  std::string request_;
  std::atomic<size_t> sent_bytes_ = 0;
  std::thread thread_;
};

PushClient::Outcome SendTo(FakeReceiver& receiver, std::string& why,
                           std::string_view path = "/") {
  auto client = PushClient::Make({.url = receiver.url(path), .name = "app"});
  EXPECT_TRUE(client) << client.error().message();
  PushEntry entry = Entry(7, 3);
  entry.body = "pprofEND";
  return client->Send(entry, why);
}

// OpenSSL writes to a socket without MSG_NOSIGNAL, and the service ignores the
// signal.
class PushConnectionTest : public testing::Test {
 protected:
  void SetUp() override { ::signal(SIGPIPE, SIG_IGN); }
};

// What the sockets' buffers take, and more than any bound.
constexpr size_t kMaxSent = size_t{16} << 20;

// A receiver that does not end its answer has taken the profile if it said so,
// and nothing of what follows is read.
TEST(PushClientTest, EndlessBodyIsNotRead) {
  std::string why;
  FakeReceiver receiver("HTTP/1.1 200 OK\r\n\r\n", std::string(65536, 'x'));
  EXPECT_EQ(SendTo(receiver, why), PushClient::Outcome::kSent) << why;
  EXPECT_LT(receiver.sent_bytes(), kMaxSent);
  EXPECT_THAT(receiver.request(), testing::HasSubstr("\r\n\r\npprofEND"));
}

// A receiver that refuses gives a reason, whose first bytes are kept as one
// line.
TEST(PushClientTest, ReasonIsOneShortLine) {
  std::string why;
  FakeReceiver receiver("HTTP/1.1 400 Bad\r\n\r\nno\nerror: \x1b[2Jpwned",
                        std::string(65536, 'x'));
  EXPECT_EQ(SendTo(receiver, why), PushClient::Outcome::kRejected);
  EXPECT_EQ(why.substr(0, 32), "status 400: no?error: ?[2Jpwnedx");
  EXPECT_EQ(why.size(), 12u + 200);
  EXPECT_LT(receiver.sent_bytes(), kMaxSent);
}

// Headers without end, and a first line that is too long to be one, end the
// attempt.
TEST(PushClientTest, EndlessHeadersAreNotRead) {
  for (const char* endless : {"", "HTTP/1.1 200 OK\r\n"}) {
    std::string why;
    FakeReceiver receiver(endless, "A: " + std::string(4000, 'b') + "\r\n");
    EXPECT_EQ(SendTo(receiver, why), PushClient::Outcome::kTryAgain);
    EXPECT_LT(receiver.sent_bytes(), kMaxSent);
  }
  std::string why;
  FakeReceiver receiver("HTTP/1.1 200 " + std::string(100'000, 'x') +
                        "\r\n\r\n");
  EXPECT_EQ(SendTo(receiver, why), PushClient::Outcome::kTryAgain);
}

// Neither does one that sends a byte now and then: the whole answer has so
// long.
TEST_F(PushConnectionTest, SlowAnswerEndsInTime) {
  FakeReceiver receiver("HTTP/1.1 200 OK\r\nA: ", "b", milliseconds(20));
  auto connection = PushConnection::Make(*ParsePushUrl(receiver.url("/")),
                                         {.token = {},
                                          .connect_within = milliseconds(5000),
                                          .answer_within = milliseconds(300)});
  ASSERT_TRUE(connection);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(
      connection->Post({.path = "/", .content_type = "a/b", .body = "END"}));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, milliseconds(290));
  EXPECT_LT(took, milliseconds(3000));
}

// The beginning of a TLS record of 16 KiB, whose bytes then come one by one.
const std::string kTlsRecord("\x16\x03\x03\x40\x00", 5);

// Nor does one whose TLS handshake never ends.
TEST_F(PushConnectionTest, SlowHandshakeEndsInTime) {
  FakeReceiver receiver(kTlsRecord, "b", milliseconds(20));
  auto connection =
      PushConnection::Make(*ParsePushUrl(receiver.url("/", "https")),
                           {.token = {},
                            .connect_within = milliseconds(5000),
                            .answer_within = milliseconds(300)});
  ASSERT_TRUE(connection) << connection.error().message();
  const auto begin = std::chrono::steady_clock::now();
  const auto answer =
      connection->Post({.path = "/", .content_type = "a/b", .body = "END"});
  const auto took = std::chrono::steady_clock::now() - begin;
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message(), testing::HasSubstr("handshake"));
  EXPECT_GE(took, milliseconds(290));
  EXPECT_LT(took, milliseconds(3000));
}

// Stopping does not wait for it either.
TEST_F(PushConnectionTest, StopEndsAHandshake) {
  FakeReceiver receiver(kTlsRecord, "b", milliseconds(20));
  auto connection = PushConnection::Make(
      *ParsePushUrl(receiver.url("/", "https")), {.token = {}});
  ASSERT_TRUE(connection) << connection.error().message();
  const auto begin = std::chrono::steady_clock::now();
  std::thread stopper([&] {
    std::this_thread::sleep_for(milliseconds(200));
    connection->Stop();
  });
  EXPECT_FALSE(
      connection->Post({.path = "/", .content_type = "a/b", .body = "END"}));
  stopper.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(3000));
}

// Pyroscope gets a form with the profile in it.
TEST(PushClientTest, PyroscopeGetsAForm) {
  std::string why;
  FakeReceiver receiver("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(SendTo(receiver, why, "/ingest"), PushClient::Outcome::kSent)
      << why;
  const std::string request = receiver.request();
  EXPECT_THAT(request, testing::StartsWith("POST /ingest?"));
  EXPECT_THAT(request, testing::HasSubstr("name=app%7Bhostname%3Dh%7D"));
  EXPECT_THAT(request,
              testing::HasSubstr(
                  "Content-Disposition: form-data; name=\"profile\"; "
                  "filename=\"profile.pprof\"\r\nContent-Type: "
                  "application/octet-stream\r\n\r\npprofEND\r\n--ksym-"));
}

// A collector gets a request of OTLP/HTTP, and what it says of parts counts; an
// answer that is none counts as one that says nothing.
TEST(PushClientTest, CollectorsSayWhatTheyDidNotTake) {
  // rejected_profiles: 2, error_message: "no" and the end of a line.
  const std::string partial("\x0a\x07\x08\x02\x12\x03no\n", 9);
  for (const auto& [answer, outcome] :
       {std::pair(std::string(), PushClient::Outcome::kSent),
        std::pair(partial, PushClient::Outcome::kRejected),
        std::pair(std::string("\x0a\x00", 2), PushClient::Outcome::kSent),
        std::pair(std::string("\xff\xff not a message"),
                  PushClient::Outcome::kSent)}) {
    std::string why;
    FakeReceiver receiver("HTTP/1.1 200 OK\r\nContent-Length: " +
                          std::to_string(answer.size()) + "\r\n\r\n" + answer);
    auto client = PushClient::Make(
        {.url = "otlp+" + receiver.url("/v1development/profiles", "http")});
    ASSERT_TRUE(client) << client.error().message();
    PushEntry entry = Entry(7, 3);
    entry.body = "otlpEND";
    EXPECT_EQ(client->Send(entry, why), outcome) << answer;
    if (outcome == PushClient::Outcome::kRejected) {
      EXPECT_EQ(why, "2 profiles of it are not taken: no?");
    }
    const std::string request = receiver.request();
    EXPECT_THAT(request, testing::StartsWith("POST /v1development/profiles "));
    EXPECT_THAT(request,
                testing::HasSubstr("Content-Type: application/x-protobuf\r\n"));
    EXPECT_THAT(request, testing::HasSubstr("Content-Encoding: gzip\r\n"));
  }
}

class PushSenderTest : public testing::Test {
 protected:
  PushSenderTest() {
    std::string pattern = (fs::temp_directory_path() / "push.XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  ~PushSenderTest() override { fs::remove_all(directory_); }

  // To a port on which nobody listens.
  std::unique_ptr<PushSender> Start(uint64_t max_bytes) {
    const PushTarget target = {.url = "http://127.0.0.1:1/"};
    auto sender = PushSender::Open(target, {directory_, max_bytes}, counters_);
    EXPECT_TRUE(sender) << sender.error().message();
    auto client = PushClient::Make(target);
    EXPECT_TRUE(client) << client.error().message();
    (*sender)->SendBy(std::move(*client));
    return std::move(*sender);
  }

  std::string directory_;
  ServiceCounters counters_;
};

// What does not fit is dropped and counted, the rest waits for the next run,
// as what another run has left half written does not.
TEST_F(PushSenderTest, SpoolIsBoundedAndStays) {
  constexpr uint64_t kMax = 100'000;
  auto sender = Start(kMax);
  for (uint64_t i = 0; i < 10; ++i) sender->Add(Entry(1000 + i, 30'000));
  EXPECT_EQ(counters_.push_dropped, 7u);
  EXPECT_EQ(counters_.push_waiting, 3u);
  EXPECT_GT(counters_.push_waiting_bytes, 90'000u);
  sender.reset();
  EXPECT_EQ(counters_.push_sent, 0u);
  EXPECT_EQ(counters_.push_waiting, 0u);
  sender = Start(kMax);
  EXPECT_EQ(counters_.push_waiting, 3u);
}

// Where the disk fails profiles are kept in memory, a few of them.
TEST_F(PushSenderTest, KeepsAFewWithoutDisk) {
  auto sender = Start(1 << 20);
  fs::remove_all(directory_);
  ASSERT_TRUE(ksym::AtomicFile::Create(directory_)->Commit());
  for (uint64_t i = 0; i < 12; ++i) sender->Add(Entry(1000 + i, 10));
  // One is perhaps being sent.
  EXPECT_GE(counters_.push_waiting, 7u);
  EXPECT_GE(counters_.push_dropped, 3u);
  EXPECT_LE(counters_.push_dropped, 4u);
}

// A file that is no profile does not keep those behind it.
TEST_F(PushSenderTest, PassesOverRubbish) {
  const std::string day = directory_ + "/" +
                          DirectoryOf({.url = "http://127.0.0.1:1/"}) +
                          "/2001/01/01";
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
