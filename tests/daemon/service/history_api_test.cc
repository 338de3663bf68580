// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "daemon/history/history_writer.h"
#include "daemon/service/history_api.h"
#include "daemon/service/http_api.h"
#include "tests/daemon/history/sample_parts.h"
#include "tests/daemon/service/second.h"

namespace profd {
namespace {

using history::kFirstPart;
using history::PartNumber;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class HistoryApiTest : public testing::Test {
 protected:
  void SetUp() override {
    auto writer = history::HistoryWriter::Open(
        directory_.path(), {}, {.boot = "b", .name = "r"}, kFirstPart);
    ASSERT_TRUE(writer) << writer.error().message();
    for (unsigned i = 0; i < 10; ++i) writer->Add(PartNumber(i, 10));
    ASSERT_TRUE(writer->Commit(kFirstPart + 10 * kSecond));
    api_.SetDirectory(directory_.path());
  }

  HttpResponse Ask(const std::string& path,
                   std::multimap<std::string, std::string> parameters = {}) {
    parameters.emplace("from", std::to_string(kFirstPart / kSecond));
    parameters.emplace("until", std::to_string(kFirstPart / kSecond + 10));
    return api_.Respond(
        {.path = "/api/history/" + path, .parameters = std::move(parameters)},
        {});
  }

  const history::TemporaryDirectory directory_;
  ServiceCounters counters_;
  HistoryApi api_{counters_};
};

TEST_F(HistoryApiTest, AnswersEachQuery) {
  HttpResponse answer = Ask("timeline", {{"step", "5"}, {"by", "comm"}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content_type, "application/json");
  EXPECT_THAT(answer.body, HasSubstr("\"known_ms\":[5000,5000]"));
  EXPECT_THAT(answer.body, HasSubstr("\"nginx\""));
  answer = Ask("functions", {{"top", "1"}, {"unit", "nginx"}});
  EXPECT_THAT(answer.body, HasSubstr("\"vfs_read\""));
  EXPECT_THAT(answer.body, Not(HasSubstr("\"serve\"")));
  answer = Ask("flame", {{"command", "python3"}});
  EXPECT_THAT(answer.body, StartsWith("{\"title\":\"host: 30 samples"));
  EXPECT_THAT(answer.body, HasSubstr("\"leaves\":"));
  const std::string middle = std::to_string(kFirstPart / kSecond + 5);
  answer = Ask("difference", {{"before", std::to_string(kFirstPart / kSecond)},
                              {"before_until", middle}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr("\"before\":["));
  answer = Ask("files");
  EXPECT_THAT(answer.body, HasSubstr("000000000001.journal"));
  // The service does not take it for its own use.
  EXPECT_GT(counters_.history_query_cpu_ns, 0u);
}

TEST_F(HistoryApiTest, GivesProfilesInEachFormat) {
  for (const std::string format :
       {"folded", "json", "pprof", "flamegraph", "svg", "text", "speedscope"}) {
    const HttpResponse answer = Ask("profile", {{"format", format}});
    EXPECT_EQ(answer.status, 200) << format << answer.body;
    EXPECT_FALSE(answer.body.empty());
  }
  const HttpResponse folded = Ask("profile", {{"function", "=view"}});
  EXPECT_EQ(folded.body, "python3;main;view 30\n");
}

TEST_F(HistoryApiTest, RefusesWhatItDoesNotUnderstand) {
  EXPECT_EQ(Ask("timeline", {{"step", "0"}}).status, 400);
  EXPECT_EQ(Ask("timeline", {{"by", "colour"}}).status, 400);
  EXPECT_EQ(Ask("timeline", {{"rows", "1000"}}).status, 400);
  EXPECT_EQ(Ask("functions", {{"colour", "red"}}).status, 400);
  EXPECT_EQ(Ask("functions", {{"seconds", "10"}}).status, 400);
  EXPECT_EQ(Ask("difference").status, 400);
  EXPECT_EQ(Ask("profile", {{"format", "paper"}}).status, 400);
  EXPECT_EQ(Ask("functions", {{"top", "1"}, {"top", "2"}}).body,
            "top is there twice\n");
  for (const char* view : {"timeline", "functions", "flame", "profile"}) {
    const HttpResponse unknown = Ask(view, {{"kind", "bogus"}});
    EXPECT_EQ(unknown.status, 400) << view;
    EXPECT_EQ(unknown.body,
              "there are no samples of kind \"bogus\", only of cpu\n");
  }
  const HttpResponse backwards =
      api_.Respond({.path = "/api/history/functions",
                    .parameters = {{"from", "20"}, {"until", "10"}}},
                   {});
  EXPECT_EQ(backwards.status, 400);
}

TEST_F(HistoryApiTest, SaysThatNothingIsKnown) {
  const HttpResponse answer =
      api_.Respond({.path = "/api/history/flame",
                    .parameters = {{"from", "10"}, {"until", "20"}}},
                   {});
  EXPECT_EQ(answer.status, 404);
  EXPECT_THAT(answer.body, HasSubstr("nothing is known of"));
  api_.SetDirectory("");
  EXPECT_EQ(Ask("flame").status, 404);
  api_.SetDirectory(directory_.path() + "/nothing");
  EXPECT_EQ(Ask("flame").status, 404);
}

TEST_F(HistoryApiTest, EndsWhenTheClientGoes) {
  const HttpResponse answer = api_.Respond({.path = "/api/history/functions",
                                            .parameters = {{"seconds", "100"}},
                                            .client = {},
                                            .is_gone = [] { return true; }},
                                           {});
  EXPECT_NE(answer.status, 200);
}

// A query that does not end as long as its client is there.
class SlowClient {
 public:
  explicit SlowClient(HistoryApi& api)
      : thread_([this, &api] {
          (void)api.Respond({.path = "/api/history/files",
                             .parameters = {},
                             .client = {},
                             .is_gone =
                                 [this] {
                                   is_there_ = true;
                                   while (!may_go_) std::this_thread::yield();
                                   return true;
                                 }},
                            {});
        }) {
    while (!is_there_) std::this_thread::yield();
  }
  ~SlowClient() {
    may_go_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> is_there_ = false;
  std::atomic<bool> may_go_ = false;
  std::thread thread_;
};

TEST_F(HistoryApiTest, RunsTwoQueriesAtOnce) {
  const SlowClient first(api_), second(api_);
  bool asked = false;
  const HttpResponse third =
      api_.Respond({.path = "/api/history/functions",
                    .parameters = {},
                    .client = {},
                    // Gives up, as the wait would be long.
                    .is_gone = [&] { return std::exchange(asked, true); }},
                   {});
  EXPECT_EQ(third.status, 503);
  EXPECT_TRUE(third.is_refusal);
}

TEST_F(HistoryApiTest, HasAPageWhileThereIsAHistory) {
  ServiceCounters counters;
  ProfileHub hub({});
  HttpApi api(counters, hub);
  const auto ask = [&](const std::string& path) {
    return api.Respond({.path = path, .parameters = {}});
  };
  EXPECT_EQ(ask("/").status, 404);
  EXPECT_EQ(ask("/history.js").status, 404);
  EXPECT_EQ(ask("/api/history/files").status, 404);
  api.SetHistory(directory_.path());
  for (const std::string path : {"/", "/history.js", "/history.css", "/flame",
                                 "/flame.js", "/flame.css"}) {
    const HttpResponse answer = ask(path);
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_TRUE(HttpApi::IsPublic(path));
    EXPECT_THAT(answer.policy, HasSubstr("script-src 'self'"));
    // Nothing in it is of another server, or runs from within the page.
    EXPECT_THAT(answer.body, Not(HasSubstr("http://"))) << path;
    EXPECT_THAT(answer.body, Not(HasSubstr("<script>"))) << path;
    EXPECT_THAT(answer.body, Not(HasSubstr("@BODY@"))) << path;
  }
  EXPECT_EQ(ask("/api/history/files").status, 200);
  EXPECT_FALSE(HttpApi::IsPublic("/api/history/files"));
  EXPECT_FALSE(HttpApi::IsPublic("/metrics"));
}

}  // namespace
}  // namespace profd
