// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/clickhouse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "tests/daemon/fleet/fake_server.h"

namespace profd::fleet {
namespace {

using ksym::ErrorCode;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

AskBounds Within(milliseconds time, size_t bytes = 1000) {
  return {.deadline = Clock::now() + time, .max_bytes = bytes};
}

ksym::Result<std::string> AskOf(const FakeServer& server,
                                const AskBounds& bounds) {
  const auto made = ClickHouse::Make({.url = server.url()});
  EXPECT_TRUE(made);
  return made->Ask("SELECT 1", bounds);
}

ksym::Result<std::string> AnswerOf(const std::string& bytes,
                                   size_t max_bytes = 1000) {
  const FakeServer server([&](const std::string&) { return bytes; });
  return AskOf(server, Within(seconds(10), max_bytes));
}

TEST(ClickHouseTest, SendsTheQueryAsTheBody) {
  const FakeServer server(
      [](const std::string&) { return FakeServer::Ok("rows"); });
  const auto made =
      ClickHouse::Make({.url = server.url(), .login = "reader:secret"});
  ASSERT_TRUE(made) << made.error().message();
  const auto rows = made->Ask("SELECT 'x'", Within(seconds(10)));
  ASSERT_TRUE(rows) << rows.error().message();
  EXPECT_EQ(*rows, "rows");
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_THAT(requests[0], testing::StartsWith("POST /?database=ksym&"));
  EXPECT_THAT(requests[0], HasSubstr("&default_format=RowBinary&"));
  EXPECT_THAT(requests[0], HasSubstr("&readonly=2&"));
  EXPECT_THAT(requests[0], HasSubstr("&max_execution_time=10&"));
  EXPECT_THAT(requests[0],
              HasSubstr("Authorization: Basic cmVhZGVyOnNlY3JldA==\r\n"));
  EXPECT_THAT(requests[0], testing::EndsWith("\r\n\r\nSELECT 'x'"));
}

TEST(ClickHouseTest, WantsADatabase) {
  for (const char* url : {"", "clickhouse+", "127.0.0.1:8123/ksym",
                          "ftp://a/ksym", "http://a:8123", "http://a:8123/",
                          "http://a:8123/k/s", "http://a:8123/k?user=x",
                          "http://a:8123/k;DROP", "otlp+http://a:8123/ksym",
                          "http://a/ingest/", "http://user@a:8123/ksym"}) {
    const auto made = ClickHouse::Make({.url = url});
    ASSERT_FALSE(made) << url;
    EXPECT_EQ(made.error().code(), ErrorCode::kInvalid) << url;
  }
  EXPECT_TRUE(ClickHouse::Make({.url = "https://[::1]:8443/ksym_2"}));
  EXPECT_TRUE(ClickHouse::Make({.url = "clickhouse+http://a/ksym"}));
}

TEST(ClickHouseTest, TakesChunks) {
  const auto rows = AnswerOf(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
      "2\r\nde\r\n0\r\n\r\n");
  ASSERT_TRUE(rows) << rows.error().message();
  EXPECT_EQ(*rows, "abcde");
}

// An answer that is cut off is none, however whole its rows are.
TEST(ClickHouseTest, RefusesAPartOfAnAnswer) {
  for (const char* bytes :
       {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nrows",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab"}) {
    const auto rows = AnswerOf(bytes);
    ASSERT_FALSE(rows) << bytes;
    EXPECT_EQ(rows.error().code(), ErrorCode::kIo) << bytes;
  }
}

TEST(ClickHouseTest, BoundsTheBytes) {
  EXPECT_TRUE(AnswerOf(FakeServer::Ok(std::string(1000, 'x'))));
  for (const size_t size : {size_t{1001}, size_t{200'000}}) {
    const auto rows = AnswerOf(FakeServer::Ok(std::string(size, 'x')));
    ASSERT_FALSE(rows) << size;
    EXPECT_EQ(rows.error().code(), ErrorCode::kLimit) << size;
  }
}

TEST(ClickHouseTest, TellsWhatFailed) {
  const auto failed = [](std::string_view text) {
    return AnswerOf("HTTP/1.1 500 Internal Server Error\r\nContent-Length: " +
                    std::to_string(text.size()) + "\r\n\r\n" +
                    std::string(text));
  };
  EXPECT_EQ(failed("Code: 81, e.displayText() = no database").error().code(),
            ErrorCode::kNotFound);
  EXPECT_EQ(failed("Code: 60. DB::Exception: no table").error().code(),
            ErrorCode::kNotFound);
  EXPECT_EQ(failed("Code: 159, e.displayText() = slow").error().code(),
            ErrorCode::kLimit);
  const auto other = failed("Code: 516. \x1b[31mwho are you?");
  EXPECT_EQ(other.error().code(), ErrorCode::kIo);
  EXPECT_EQ(other.error().message(),
            "the database: status 500: Code: 516. ?[31mwho are you?");
  EXPECT_EQ(AnswerOf("SSH-2.0-OpenSSH\r\n").error().code(), ErrorCode::kIo);
  EXPECT_EQ(AnswerOf("").error().code(), ErrorCode::kIo);
}

TEST(ClickHouseTest, NobodyThere) {
  std::string url;
  {
    const FakeServer server([](const std::string&) { return ""; });
    url = server.url();
  }
  const auto made = ClickHouse::Make({.url = url});
  const auto rows = made->Ask("SELECT 1", Within(seconds(10)));
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code(), ErrorCode::kIo);
}

TEST(ClickHouseTest, EndsInTime) {
  FakeServer* waiting = nullptr;
  FakeServer server([&](const std::string&) {
    waiting->WaitForEnd();
    return std::string();
  });
  waiting = &server;
  const Clock::time_point begin = Clock::now();
  const auto rows = AskOf(server, Within(milliseconds(300)));
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code(), ErrorCode::kLimit);
  EXPECT_LT(Clock::now() - begin, seconds(5));
  EXPECT_EQ(AskOf(server, Within(milliseconds(-1))).error().code(),
            ErrorCode::kLimit);
}

TEST(ClickHouseTest, EndsWhenNobodyWaits) {
  FakeServer* waiting = nullptr;
  FakeServer server([&](const std::string&) {
    waiting->WaitForEnd();
    return std::string();
  });
  waiting = &server;
  std::atomic<bool> is_gone = false;
  std::thread client([&] {
    std::this_thread::sleep_for(milliseconds(100));
    is_gone = true;
  });
  AskBounds bounds = Within(seconds(30));
  bounds.is_over = [&] { return is_gone.load(); };
  const Clock::time_point begin = Clock::now();
  EXPECT_FALSE(AskOf(server, bounds));
  EXPECT_LT(Clock::now() - begin, seconds(10));
  client.join();
}

}  // namespace
}  // namespace profd::fleet
