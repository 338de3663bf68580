// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "daemon/output/format.h"
#include "daemon/profile/profile_merge.h"
#include "daemon/service/counters.h"
#include "daemon/service/http_api.h"
#include "daemon/service/listen_address.h"
#include "daemon/service/metric_table.h"
#include "daemon/service/metrics.h"
#include "daemon/service/profile_hub.h"
#include "tests/daemon/service/second.h"

namespace profd {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

// A profile of a second in which `name` was sampled so often, called by main.
Profile Sampled(std::string_view name, uint64_t count, uint64_t start_ns = 0) {
  ProfileBuilder builder;
  builder.Intern("other strings shift the numbers of " + std::string(name));
  Frame frame;
  frame.object = builder.Intern("/bin/app");
  frame.name = builder.Intern(name);
  const FrameId leaf = builder.AddFrame(frame);
  frame.name = builder.Intern("main");
  const FrameId root = builder.AddFrame(frame);
  const FrameId stack[] = {leaf, root};
  builder.AddSample({.comm = builder.Intern("app"),
                     .pid = 7,
                     .user_state = StackState::kWhole,
                     .user = builder.AddStack(stack),
                     .count = count});
  builder.Add(Accounting{.taken = count, .emitted = count});
  CaptureMetadata metadata;
  metadata.kinds = {EventKind("cpu-clock", 19, 0)};
  metadata.start_unix_ns = start_ns;
  metadata.duration_ns = kSecond;
  metadata.warnings = {"of " + std::string(name)};
  return std::move(builder).Finish(metadata);
}

ProfileHub::Shared Share(Profile profile) {
  return std::make_shared<const Profile>(std::move(profile));
}

// Equal stacks of two profiles become one whatever numbers their tables gave
// them; counts, accounting and time are summed, warnings united.
TEST(ProfileMergeTest, SumsWhatIsEqual) {
  ProfileMerger merger;
  merger.Add(Sampled("f", 2, 5 * kSecond));
  merger.Add(Sampled("g", 3, 6 * kSecond));
  merger.Add(Sampled("f", 5, 7 * kSecond));
  EXPECT_EQ(merger.duration_ns(), 3 * kSecond);
  const Profile merged = std::move(merger).Finish();
  EXPECT_EQ(Render(merged, OutputFormat::kFolded, {}),
            "app;main;f 7\napp;main;g 3\n");
  EXPECT_EQ(merged.accounting.taken, 10u);
  EXPECT_EQ(merged.accounting.emitted, 10u);
  EXPECT_EQ(merged.metadata.start_unix_ns, 5 * kSecond);
  EXPECT_EQ(merged.metadata.duration_ns, 3 * kSecond);
  EXPECT_THAT(merged.metadata.warnings, testing::ElementsAre("of f", "of g"));
  EXPECT_EQ(merged.samples.size(), 2u);
  EXPECT_EQ(merged.frames.size(), 3u);
}

HttpClient User(std::string name) {
  return {.way = HttpWay::kUnixSocket, .name = std::move(name)};
}

// All may have as much as there is; with one byte more the largest request of
// the client that has most ends, for good, and the others go on.
TEST(LiveRoomTest, EndsWhoHasMost) {
  LiveRoom room(100);
  LiveRoom::Use one(room, User("1"));
  LiveRoom::Use small(room, User("2"));
  LiveRoom::Use large(room, User("2"));
  EXPECT_TRUE(one.Set(40));
  EXPECT_TRUE(small.Set(29));
  EXPECT_TRUE(large.Set(31));
  EXPECT_TRUE(one.Set(41));
  EXPECT_FALSE(large.Set(0));
  EXPECT_TRUE(small.Set(29));
  EXPECT_FALSE(one.Set(72));
  EXPECT_TRUE(small.Set(100));
  EXPECT_FALSE(small.Set(101));
}

// What a request had is free when it has ended.
TEST(LiveRoomTest, GivesBack) {
  LiveRoom room(100);
  LiveRoom::Use one(room, User("1"));
  {
    LiveRoom::Use other(room, User("2"));
    EXPECT_TRUE(other.Set(100));
  }
  EXPECT_TRUE(one.Set(100));
}

// The hub keeps the newest profiles within its memory and finds those that
// have any of a time in them; both ends are exclusive.
TEST(ProfileHubTest, KeepsTheNewest) {
  ProfileHub hub({.bytes = 5000, .seconds = 1000});
  for (uint64_t i = 0; i < 100; ++i) {
    hub.AddProfile(Share(Sampled("f", i, i * kSecond)));
  }
  const auto kept = hub.Recent(0, 1000 * kSecond);
  ASSERT_GT(kept.size(), 2u);
  EXPECT_LT(kept.size(), 20u);
  EXPECT_EQ(kept.back()->accounting.taken, 99u);
  EXPECT_EQ(hub.Recent(98 * kSecond, 99 * kSecond).size(), 1u);
  EXPECT_EQ(hub.Recent(98 * kSecond + 1, 99 * kSecond + 1).size(), 2u);
  EXPECT_TRUE(hub.Recent(100 * kSecond, 101 * kSecond).empty());
}

// What texts take counts by their bytes, of profiles and of parts that wait.
TEST(ProfileHubTest, CountsLongTexts) {
  constexpr size_t kBytes = size_t{1} << 20;
  ProfileHub hub({.bytes = 5 * kBytes, .seconds = 1000});
  const std::string name(kBytes / 2, 'n');  // each profile has it twice
  for (uint64_t i = 0; i < 10; ++i) {
    hub.AddProfile(Share(Sampled(name, i, i * kSecond)));
  }
  EXPECT_EQ(hub.Recent(0, 1000 * kSecond).size(), 4u);
  ProfileHub::Subscription subscription(hub);
  for (uint64_t i = 0; i < 100; ++i) {
    hub.AddPart(Share(Sampled(name, i)));
  }
  uint64_t first = 0;
  size_t parts = 0;
  while (const auto part = subscription.Next(steady_clock::now())) {
    if (parts++ == 0) first = (*part)->accounting.taken;
  }
  EXPECT_EQ(parts, 31u);
  EXPECT_EQ(first, 69u);
}

// Nor any that ended longer ago than it may; the last one stays.
TEST(ProfileHubTest, ForgetsTheOld) {
  ProfileHub hub({.bytes = 1 << 20, .seconds = 5});
  for (uint64_t i = 0; i < 100; ++i) {
    hub.AddProfile(Share(Sampled("f", i, i * kSecond)));
  }
  EXPECT_EQ(hub.Recent(0, 1000 * kSecond).size(), 6u);
  EXPECT_EQ(hub.Recent(0, 95 * kSecond).size(), 1u);
  hub.SetLimits({.bytes = 1 << 20, .seconds = 0});
  EXPECT_EQ(hub.Recent(0, 1000 * kSecond).size(), 1u);
}

// A subscriber gets the parts from its making on, and wakes when it closes.
TEST(ProfileHubTest, HandsPartsOn) {
  ProfileHub hub({.bytes = 0, .seconds = 0});
  hub.AddPart(Share(Sampled("early", 1)));
  ProfileHub::Subscription subscription(hub);
  hub.AddPart(Share(Sampled("f", 1)));
  const auto deadline = steady_clock::now() + seconds(20);
  EXPECT_EQ((*subscription.Next(deadline))->metadata.warnings[0], "of f");
  EXPECT_FALSE(subscription.Next(steady_clock::now()));
  std::thread closer([&hub] { hub.Close(); });
  EXPECT_FALSE(subscription.Next(deadline));
  closer.join();
  EXPECT_LT(steady_clock::now(), deadline);
}

// Adds a wait of 900 us to the profile's first stack.
Profile WithBlocked(Profile profile) {
  profile.metadata.kinds.push_back({.name = "blocked",
                                    .unit = "nanoseconds",
                                    .event = "sched_switch",
                                    .has_values = true});
  profile.samples.push_back(profile.samples.front());
  profile.samples.back().kind = 1;
  profile.samples.back().value = 900'000;
  profile.accounting.taken *= 2;
  profile.accounting.emitted *= 2;
  return profile;
}

class HttpApiTest : public testing::Test {
 protected:
  HttpResponse Get(std::string path,
                   std::multimap<std::string, std::string> parameters = {}) {
    return HttpApi(counters_, hub_)
        .Respond({std::move(path), std::move(parameters)});
  }

  ServiceCounters counters_;
  ProfileHub hub_{{.bytes = 1 << 20, .seconds = 1000}};
};

// /debug/pprof/profile answers with what is sampled from now on, and ends when
// there are as many seconds of it.
TEST_F(HttpApiTest, ProfilesFromNowOn) {
  std::thread sampling([this] {
    // Until the answer is there; a subscription begins at any time.
    for (int i = 0; i < 200; ++i) {
      hub_.AddPart(Share(Sampled("f", 1)));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const HttpResponse answer = Get("/debug/pprof/profile", {{"seconds", "3"}});
  sampling.join();
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.content_type, "application/octet-stream");
  EXPECT_EQ(answer.body.substr(0, 2), "\x1f\x8b");
}

// It ends with 503 when what it puts together takes more than there is for it.
TEST_F(HttpApiTest, LiveProfilesAreBounded) {
  constexpr size_t kBytes = size_t{1} << 20;
  std::atomic<bool> is_done = false;
  std::thread sampling([&] {
    for (int i = 0; !is_done; ++i) {
      hub_.AddPart(
          Share(Sampled(std::to_string(i) + std::string(kBytes, 'n'), 1)));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const HttpResponse answer = Get("/debug/pprof/profile", {{"seconds", "600"}});
  is_done = true;
  sampling.join();
  EXPECT_EQ(answer.status, 503);
  EXPECT_TRUE(answer.is_refusal);
  EXPECT_THAT(answer.body, HasSubstr("memory"));
}

// /profile answers with the intervals in memory, by age or by time, in each
// format.
TEST_F(HttpApiTest, AnswersWithRecentProfiles) {
  const auto now = static_cast<uint64_t>(::time(nullptr));
  hub_.AddProfile(Share(Sampled("old", 1, (now - 1000) * kSecond)));
  hub_.AddProfile(Share(Sampled("f", 2, (now - 3) * kSecond)));
  hub_.AddProfile(Share(Sampled("g", 3, (now - 2) * kSecond)));
  EXPECT_EQ(Get("/profile").body, "app;main;f 2\napp;main;g 3\n");
  EXPECT_EQ(Get("/profile", {{"from", std::to_string(now - 1001)},
                             {"until", std::to_string(now - 990)}})
                .body,
            "app;main;old 1\n");
  const HttpResponse json = Get("/profile", {{"format", "json"}});
  EXPECT_EQ(json.content_type, "application/json");
  EXPECT_EQ(json.body.front(), '{');
  EXPECT_EQ(Get("/profile", {{"from", "5"}, {"until", "6"}}).status, 404);
}

// Formats of one kind of samples have the one that is asked for.
TEST_F(HttpApiTest, ShowsTheKindThatIsAskedFor) {
  const auto now = static_cast<uint64_t>(::time(nullptr));
  hub_.AddProfile(Share(WithBlocked(Sampled("f", 2, (now - 3) * kSecond))));
  EXPECT_EQ(Get("/profile").body, "app;main;f 2\n");
  EXPECT_EQ(Get("/profile", {{"value", "samples"}}).body, "app;main;f 2\n");
  EXPECT_EQ(Get("/profile", {{"value", "blocked"}}).body, "app;main;f 900\n");
  const HttpResponse refused = Get("/profile", {{"value", "wall"}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("cpu and blocked"));
  EXPECT_EQ(Get("/debug/pprof/profile", {{"value", "cpu"}}).status, 400);
}

// Only the first kind is in an answer, as where there are no others, unless
// one, or all, are asked for; also of profiles of which some have no others.
TEST_F(HttpApiTest, HasTheKindsThatAreAskedFor) {
  const auto now = static_cast<uint64_t>(::time(nullptr));
  hub_.AddProfile(Share(Sampled("before", 1, (now - 4) * kSecond)));
  hub_.AddProfile(Share(WithBlocked(Sampled("f", 2, (now - 3) * kSecond))));
  const auto json = [&](std::multimap<std::string, std::string> parameters) {
    parameters.emplace("format", "json");
    const HttpResponse response = Get("/profile", std::move(parameters));
    EXPECT_EQ(response.status, 200) << response.body;
    return response.body;
  };
  const std::string kind = R"("name":"blocked")";
  EXPECT_THAT(json({}), Not(HasSubstr(kind)));
  EXPECT_EQ(json({}), json({{"kind", "cpu"}}));
  EXPECT_EQ(json({}), json({{"kind", "samples"}}));
  EXPECT_THAT(json({}), HasSubstr(R"("taken":3,"emitted":3)"));
  EXPECT_THAT(json({{"kind", "blocked"}}), HasSubstr(kind));
  EXPECT_THAT(json({{"kind", "blocked"}}),
              HasSubstr(R"("taken":2,"emitted":2)"));
  EXPECT_THAT(json({{"kind", "blocked"}}), Not(HasSubstr(R"("before")")));
  EXPECT_THAT(json({{"kind", "all"}}), HasSubstr(kind));
  EXPECT_THAT(json({{"kind", "all"}}), HasSubstr(R"("before")"));
  EXPECT_EQ(json({{"kind", "all"}, {"value", "cpu"}}),
            json({{"value", "cpu"}}));
  EXPECT_EQ(Get("/profile", {{"kind", "blocked"}}).body, "app;main;f 900\n");
  EXPECT_THAT(Get("/profile", {{"kind", "wall"}}).body,
              HasSubstr("cpu and blocked"));
  EXPECT_EQ(Get("/profile", {{"kind", "cpu"}, {"value", "blocked"}}).status,
            400);
}

// What cannot be understood is refused and named.
TEST_F(HttpApiTest, RefusesWhatItDoesNotUnderstand) {
  for (const auto& [name, value] :
       {std::pair("seconds", "x"), std::pair("seconds", "-1"),
        std::pair("seconds", "601"), std::pair("secons", "1")}) {
    const HttpResponse answer = Get("/debug/pprof/profile", {{name, value}});
    EXPECT_EQ(answer.status, 400);
    EXPECT_THAT(answer.body, HasSubstr(name));
  }
  EXPECT_EQ(Get("/profile", {{"format", "gif"}}).status, 400);
  EXPECT_EQ(Get("/profile", {{"seconds", "1"}, {"from", "1"}}).status, 400);
  EXPECT_EQ(Get("/").status, 404);
  EXPECT_EQ(Get("/").body,
            "there are /debug/pprof/profile?seconds=N&kind=KIND, "
            "/profile?format=F&seconds=N&kind=KIND&value=KIND, "
            "/api/history/files?from=A&until=B, "
            "/api/history/timeline?from=A&until=B&step=N&by=LABEL&lanes=1, "
            "/api/history/functions?from=A&until=B&top=N, "
            "/api/history/flame?from=A&until=B&nodes=N, "
            "/api/history/difference?from=A&until=B&before=C&before_until=D, "
            "/api/history/profile?from=A&until=B&format=F, /metrics, "
            "/healthz and /version\n");
  EXPECT_EQ(Get("/debug/pprof/heap").status, 404);
  EXPECT_EQ(Get("/healthz").body, "ok\n");
  EXPECT_EQ(Get("/version").body, "ksym-profiled " KSYM_VERSION "\n");
}

// Each metric has its help and type before it, and values are what was counted.
TEST_F(HttpApiTest, MetricsAreWellFormed) {
  counters_.samples_taken = 12;
  counters_.lost_by_cause[static_cast<size_t>(LossCause::kRingFull)] = 3;
  const std::string text = Get("/metrics").body;
  EXPECT_THAT(text, HasSubstr("# TYPE ksym_samples_taken_total counter\n"
                              "ksym_samples_taken_total 12\n"));
  EXPECT_THAT(text,
              HasSubstr("ksym_samples_lost_total{cause=\"ring-full\"} 3"));
  std::string family;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = text.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("# TYPE ")) {
      family = line.substr(7, line.rfind(' ') - 7);
    } else if (!line.starts_with("# HELP ")) {
      EXPECT_THAT(line, MatchesRegex("ksym_[a-z_]+(\\{[a-z]+=\"[^\"]+\"\\})? "
                                     "[0-9.e+-]+"));
      EXPECT_EQ(line.substr(0, line.find_first_of(" {")), family);
    }
  }
}

// A metric is told apart by its name and label, has one place for its number,
// and a help text where its family begins.
TEST(MetricTableTest, RowsAreWhole) {
  std::string_view family;
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const Metric& metric : Metrics()) {
    EXPECT_TRUE(seen.emplace(metric.name, metric.label_value).second)
        << metric.name;
    EXPECT_NE(metric.counter == nullptr, metric.read == nullptr) << metric.name;
    EXPECT_EQ(metric.help.empty(), metric.name == family) << metric.name;
    EXPECT_EQ(metric.name.ends_with("_total"),
              metric.kind == Metric::Kind::kCounter)
        << metric.name;
    family = metric.name;
  }
}

// Addresses are numbers or paths; everything else is refused.
TEST(ListenAddressTest, TakesNumbersAndPaths) {
  EXPECT_EQ(ParseListenAddress("unix:/run/a.sock")->path, "/run/a.sock");
  EXPECT_TRUE(ParseListenAddress(":4040")->is_loopback());
  EXPECT_TRUE(ParseListenAddress("127.9.9.9:4040")->is_loopback());
  EXPECT_TRUE(ParseListenAddress("[::1]:4040")->is_loopback());
  EXPECT_FALSE(ParseListenAddress("0.0.0.0:4040")->is_loopback());
  EXPECT_FALSE(ParseListenAddress("[::]:4040")->is_loopback());
  for (const char* text :
       {"", "4040", "host:80", ":0", ":65536", ":80x", "unix:a",
        "unix:", "::1:80", "[::1]", "[::1:80", "1.2.3:80"}) {
    EXPECT_FALSE(ParseListenAddress(text)) << text;
  }
  EXPECT_TRUE(ParseListenAddress("unix:/" + std::string(106, 'x')));
  EXPECT_FALSE(ParseListenAddress("unix:/" + std::string(107, 'x')));
}

}  // namespace
}  // namespace profd
