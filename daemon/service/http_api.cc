#include "daemon/service/http_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "daemon/output/format.h"
#include "daemon/profile/profile_merge.h"
#include "daemon/service/metrics.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr uint64_t kDefaultSeconds = 30;  // as Go's own /debug/pprof/profile
constexpr uint64_t kMostSeconds = 600;
// Parts come once a second; the last one may be that late.
constexpr std::chrono::seconds kPatience(3);
constexpr std::chrono::milliseconds kLookAtClient(500);
constexpr std::chrono::seconds kRoomWithin(20);

// go tool pprof shows such a body to its user.
HttpAnswer BadRequest(std::string why) {
  return {.status = 400, .body = std::move(why) + "\n"};
}

HttpAnswer Refuse(HttpPlaces::Refusal refusal) {
  if (refusal == HttpPlaces::Refusal::kClientHasEnough) {
    return {.status = 429,
            .body = "this client has as many requests as it may\n",
            .is_refusal = true};
  }
  return {.status = 503, .body = "too many clients\n", .is_refusal = true};
}

HttpKind KindOf(std::string_view path) {
  if (path == "/debug/pprof/profile") return HttpKind::kLive;
  return path == "/profile" ? HttpKind::kRecent : HttpKind::kQuick;
}

// A part before the deadline, while the client is there and the hub is open.
std::optional<ProfileHub::Shared> NextPart(
    ProfileHub::Subscription& subscription, const HttpQuestion& question,
    Clock::time_point deadline) {
  while (!question.is_gone()) {
    const auto until = std::min(deadline, Clock::now() + kLookAtClient);
    if (auto part = subscription.Next(until)) return part;
    const bool is_closed = Clock::now() < until;
    if (is_closed || until == deadline) break;
  }
  return std::nullopt;
}

// What is sampled from now on for about that long; less if there is no more.
// Nothing: it took more memory than it may.
std::optional<ProfileMerger> Collect(ProfileHub& hub, LiveRoom& room,
                                     const HttpQuestion& question,
                                     uint64_t seconds) {
  const auto deadline =
      Clock::now() + std::chrono::seconds(seconds) + kPatience;
  ProfileHub::Subscription subscription(hub);
  ProfileMerger merger;
  LiveRoom::Use use(room, question.client);
  // The first part has begun before the request, so half a part less is as
  // good as half a part more, and the answer is in time.
  while (merger.duration_ns() + kNsPerSecond / 2 < seconds * kNsPerSecond) {
    const auto part = NextPart(subscription, question, deadline);
    if (!part) break;
    merger.Add(**part);
    if (!use.Set(merger.memory_bytes())) return std::nullopt;
  }
  return merger;
}

struct Parameter {
  std::string_view name;
  uint64_t most;
  std::optional<uint64_t> value;
};

// Fills the values in; returns what is wrong, or nothing. `format` may stand
// there as well if it is not null.
std::optional<std::string> ReadParameters(const HttpQuestion& question,
                                          std::span<Parameter> parameters,
                                          std::string* format) {
  for (const auto& [name, text] : question.parameters) {
    if (format != nullptr && name == "format") {
      *format = text;
      continue;
    }
    const auto parameter =
        std::ranges::find(parameters, name, &Parameter::name);
    if (parameter == parameters.end()) {
      return fmt::format("unknown parameter {}", name);
    }
    const auto value = ksym::ParseUnsigned(text, 10);
    if (!value || *value > parameter->most) {
      return fmt::format("{} must be a whole number up to {}", name,
                         parameter->most);
    }
    parameter->value = value;
  }
  return std::nullopt;
}

std::string_view ContentType(OutputFormat format) {
  switch (format) {
    case OutputFormat::kJson:
    case OutputFormat::kSpeedscope:
      return "application/json";
    case OutputFormat::kFlamegraph:
      return "text/html; charset=utf-8";
    case OutputFormat::kSvg:
      return "image/svg+xml";
    case OutputFormat::kPprof:
      return "application/octet-stream";
    default:
      return "text/plain; charset=utf-8";
  }
}

}  // namespace

HttpAnswer HttpApi::Answer(const HttpQuestion& question) const {
  auto place = places_.Take(KindOf(question.path), question.client);
  if (!place) return Refuse(place.error());
  HttpAnswer answer = AnswerPlaced(question);
  answer.holds.push_back(std::move(*place));
  return answer;
}

HttpAnswer HttpApi::AnswerPlaced(const HttpQuestion& question) const {
  if (question.path == "/debug/pprof/profile") return Profile(question);
  if (question.path == "/profile") return RecentProfile(question);
  if (question.path == "/metrics") {
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
            .body = RenderMetrics(counters_)};
  }
  if (question.path == "/healthz") return {.body = "ok\n"};
  if (question.path == "/version") {
    return {.body = "ksym-profiled " KSYM_VERSION "\n"};
  }
  return {.status = 404,
          .body =
              "there are /debug/pprof/profile?seconds=N, "
              "/profile?format=F&seconds=N, /metrics, /healthz and "
              "/version\n"};
}

HttpAnswer HttpApi::Profile(const HttpQuestion& question) const {
  Parameter seconds = {"seconds", kMostSeconds, {}};
  const auto wrong = ReadParameters(question, {&seconds, 1}, nullptr);
  if (wrong) return BadRequest(*wrong);
  const uint64_t wanted =
      std::max<uint64_t>(seconds.value.value_or(kDefaultSeconds), 1);
  auto merger = Collect(hub_, live_, question, wanted);
  if (!merger) {
    return {.status = 503,
            .body =
                "what was sampled takes more memory than there is for clients: "
                "ask for fewer seconds\n",
            .is_refusal = true};
  }
  if (merger->duration_ns() == 0 || question.is_gone()) {
    return {.status = 503, .body = "nothing is sampled now\n"};
  }
  return Make(question, OutputFormat::kPprof, [&] {
    return Render(std::move(*merger).Finish(), OutputFormat::kPprof,
                  OptionsFor(OutputFormat::kPprof, labels()));
  });
}

HttpAnswer HttpApi::RecentProfile(const HttpQuestion& question) const {
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  std::array<Parameter, 3> parameters = {
      {{"seconds", kMost, {}}, {"from", kMost, {}}, {"until", kMost, {}}}};
  std::string format_name = "folded";
  const auto wrong = ReadParameters(question, parameters, &format_name);
  if (wrong) return BadRequest(*wrong);
  const auto& [seconds, from, until] = parameters;
  if (seconds.value && (from.value || until.value)) {
    return BadRequest("seconds and from or until contradict each other");
  }
  const auto format = ParseOutputFormat(format_name);
  if (!format) return BadRequest(format.error().message());
  const auto now = static_cast<uint64_t>(::time(nullptr)) + 1;
  const uint64_t end = until.value.value_or(now);
  const uint64_t begin = from.value.value_or(
      end - std::min(end, seconds.value.value_or(kDefaultSeconds)));
  const auto profiles = hub_.Recent(begin * kNsPerSecond, end * kNsPerSecond);
  if (profiles.empty()) {
    return {.status = 404,
            .body =
                "no profile of that time is in memory; see "
                "http.recent_seconds, http.recent_bytes and "
                "interval_seconds\n"};
  }
  return Make(question, *format, [&] {
    ProfileMerger merger;
    for (const auto& profile : profiles) merger.Add(*profile);
    return Render(std::move(merger).Finish(), *format,
                  OptionsFor(*format, labels()));
  });
}

HttpAnswer HttpApi::Make(const HttpQuestion& question, OutputFormat format,
                         const std::function<std::string()>& make) const {
  auto made = room_.Make(make, question.is_gone, Clock::now() + kRoomWithin);
  if (!made) {
    return {.status = 503,
            .body = "too many answers wait to be taken\n",
            .is_refusal = true};
  }
  return {.content_type = std::string(ContentType(format)),
          .body = std::move(made->body),
          .holds = {std::move(made->held)}};
}

void HttpApi::SetLabels(const Labels& labels) {
  const std::lock_guard lock(mutex_);
  labels_ = labels;
}

Labels HttpApi::labels() const {
  const std::lock_guard lock(mutex_);
  return labels_;
}

}  // namespace profd
