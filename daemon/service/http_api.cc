// SPDX-License-Identifier: Apache-2.0
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
#include <vector>

#include "daemon/base/now_ns.h"
#include "daemon/output/format.h"
#include "daemon/profile/kind_select.h"
#include "daemon/profile/profile_merge.h"
#include "daemon/service/history_page.h"
#include "daemon/service/http_parameters.h"
#include "daemon/service/metrics.h"
#include "ksym/base/word_list.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kDefaultSeconds = 30;  // as Go's own /debug/pprof/profile
constexpr uint64_t kMaxSeconds = 600;
// Parts come once a second; the last one may be that late.
constexpr std::chrono::seconds kPatience(3);
constexpr std::chrono::milliseconds kLookAtClient(500);
constexpr std::chrono::seconds kRoomWithin(20);

HttpResponse Refuse(HttpPlaces::Refusal refusal) {
  if (refusal == HttpPlaces::Refusal::kClientHasEnough) {
    return {.status = 429,
            .body = "this client has as many requests as it may\n",
            .is_refusal = true};
  }
  return {.status = 503, .body = "too many clients\n", .is_refusal = true};
}

// The kinds of samples that are asked for: all of them, the first, or one.
struct WantedKinds {
  std::string kind;   // empty: all if there is a value, else the first
  std::string value;  // that is shown where one is; empty: the first

  bool all() const { return kind == "all" || (kind.empty() && !value.empty()); }
  ProfileMerger merger() const {
    if (all()) return {};
    // Which are the first ones here.
    return ProfileMerger(kind == "samples" ? "" : kind);
  }
};

// A request for samples that are taken from now on.
struct WantedLive {
  uint64_t seconds = 0;
  WantedKinds kinds;
};

// A part before the deadline, while the client is there and the hub is open.
std::optional<ProfileHub::Shared> NextPart(
    ProfileHub::Subscription& subscription, const HttpRequest& request,
    Clock::time_point deadline) {
  while (!request.is_gone()) {
    const auto until = std::min(deadline, Clock::now() + kLookAtClient);
    if (auto part = subscription.Next(until)) return part;
    const bool is_closed = Clock::now() < until;
    if (is_closed || until == deadline) break;
  }
  return std::nullopt;
}

// Gives what is sampled from now on for about that long; less if no more comes.
// Nothing: it took more memory than it may.
std::optional<ProfileMerger> Collect(ProfileHub& hub, LiveRoom& room,
                                     const HttpRequest& request,
                                     const WantedLive& wanted) {
  const auto deadline =
      Clock::now() + std::chrono::seconds(wanted.seconds) + kPatience;
  ProfileHub::Subscription subscription(hub);
  ProfileMerger merger = wanted.kinds.merger();
  LiveRoom::Use use(room, request.client);
  // The first part has begun before the request, so half a part less is as
  // good as half a part more, and the response is in time.
  while (merger.duration_ns() + kNsPerSecond / 2 <
         wanted.seconds * kNsPerSecond) {
    const auto part = NextPart(subscription, request, deadline);
    if (!part) break;
    merger.Add(**part);
    if (!use.Set(merger.memory_bytes())) return std::nullopt;
  }
  return merger;
}

// Whether the kinds are there.
ksym::Status KnowsKinds(const WantedKinds& wanted,
                        std::vector<SampleKind> kinds) {
  if (!wanted.all()) {
    const auto place = PlaceOfKind(wanted.kind, kinds);
    if (!place) return ksym::Fail(place.error());
    kinds = {kinds[*place]};
  }
  return KnowsKind(wanted.value, kinds);
}

// All that are in one of the profiles, in the order in which they come when
// these are merged.
std::vector<SampleKind> KindsOf(std::span<const ProfileHub::Shared> profiles) {
  std::vector<SampleKind> kinds;
  for (const auto& profile : profiles) {
    for (const SampleKind& kind : profile->metadata.kinds) {
      if (!FindKind(kinds, kind.name)) kinds.push_back(kind);
    }
  }
  return kinds;
}

}  // namespace

const std::array<HttpApi::Route, 11> HttpApi::kRoutes = {{
    {.path = "/debug/pprof/profile",
     .usage = "/debug/pprof/profile?seconds=N&kind=KIND",
     .kind = HttpKind::kLive,
     .respond = &HttpApi::Profile},
    {.path = "/profile",
     .usage = "/profile?format=F&seconds=N&kind=KIND&value=KIND",
     .kind = HttpKind::kRecent,
     .respond = &HttpApi::RecentProfile},
    {.path = "/api/history/files",
     .usage = "/api/history/files?from=A&until=B",
     .kind = HttpKind::kHistory,
     .respond = &HttpApi::History},
    {.path = "/api/history/timeline",
     .usage = "/api/history/timeline?from=A&until=B&step=N&by=LABEL&lanes=1",
     .kind = HttpKind::kHistory,
     .respond = &HttpApi::History},
    {.path = "/api/history/functions",
     .usage = "/api/history/functions?from=A&until=B&top=N",
     .kind = HttpKind::kHistory,
     .respond = &HttpApi::History},
    {.path = "/api/history/flame",
     .usage = "/api/history/flame?from=A&until=B&nodes=N",
     .kind = HttpKind::kHistory,
     .respond = &HttpApi::History},
    {.path = "/api/history/difference",
     .usage = "/api/history/difference?from=A&until=B&before=C&before_until=D",
     .kind = HttpKind::kHistory,
     .respond = &HttpApi::History},
    {.path = "/api/history/profile",
     .usage = "/api/history/profile?from=A&until=B&format=F",
     .kind = HttpKind::kHistory,
     .respond = &HttpApi::History},
    {.path = "/metrics", .respond = &HttpApi::Metrics},
    {.path = "/healthz", .respond = &HttpApi::Health},
    {.path = "/version", .respond = &HttpApi::Version},
}};

HttpResponse HttpApi::Respond(const HttpRequest& request) const {
  const auto route = std::ranges::find(kRoutes, request.path, &Route::path);
  const bool is_known = route != kRoutes.end();
  const HistoryPage::File* file =
      history_.is_on() ? HistoryPage::Find(request.path) : nullptr;
  const HttpKind kind = file != nullptr ? HttpKind::kPage
                        : is_known      ? route->kind
                                        : HttpKind::kQuick;
  auto place = places_.Take(kind, request.client);
  if (!place) return Refuse(place.error());
  HttpResponse response = file != nullptr ? HistoryPage::Respond(*file)
                          : is_known      ? (this->*route->respond)(request)
                                          : NotFound();
  response.holds.push_back(std::move(*place));
  return response;
}

HttpResponse HttpApi::NotFound() {
  std::vector<std::string_view> usages;
  usages.reserve(kRoutes.size());
  for (const Route& route : kRoutes) {
    usages.push_back(route.usage.empty() ? route.path : route.usage);
  }
  return {.status = 404, .body = "there are " + ksym::Enumerate(usages) + "\n"};
}

bool HttpApi::IsPublic(std::string_view path) {
  return HistoryPage::Find(path) != nullptr;
}

// Each path of the history is there while one is kept.
HttpResponse HttpApi::History(const HttpRequest& request) const {
  return history_.Respond(request, labels());
}

HttpResponse HttpApi::Metrics(const HttpRequest& /*request*/) const {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = RenderMetrics(counters_)};
}

HttpResponse HttpApi::Health(const HttpRequest& /*request*/) const {
  return {.body = "ok\n"};
}

HttpResponse HttpApi::Version(const HttpRequest& /*request*/) const {
  return {.body = "ksym-profiled " KSYM_VERSION "\n"};
}

HttpResponse HttpApi::Profile(const HttpRequest& request) const {
  NumberParameter seconds = {"seconds", kMaxSeconds, {}};
  TextParameter kind = {"kind", ""};
  const auto wrong =
      ReadParameters(request.parameters, {&seconds, 1}, {&kind, 1});
  if (wrong) return BadRequest(*wrong);
  const WantedLive wanted = {
      .seconds = std::max<uint64_t>(seconds.value.value_or(kDefaultSeconds), 1),
      .kinds = {.kind = kind.value, .value = {}}};
  auto merger = Collect(hub_, live_, request, wanted);
  if (!merger) {
    return {.status = 503,
            .body =
                "what was sampled takes more memory than there is for clients: "
                "ask for fewer seconds\n",
            .is_refusal = true};
  }
  if (merger->duration_ns() == 0 || request.is_gone()) {
    return {.status = 503, .body = "nothing is sampled now\n"};
  }
  // Only parts say which kinds are sampled, so this comes after them.
  const auto known = KnowsKinds(wanted.kinds, merger->kinds());
  if (!known) return BadRequest(known.error().message());
  return Make(request, OutputFormat::kPprof, [&] {
    return RenderWithin(kMaxRenderedBytes, std::move(*merger).Finish(),
                        OutputFormat::kPprof,
                        OptionsFor(OutputFormat::kPprof, labels()));
  });
}

HttpResponse HttpApi::RecentProfile(const HttpRequest& request) const {
  constexpr uint64_t kMax = std::numeric_limits<uint32_t>::max();
  std::array<NumberParameter, 3> parameters = {
      {{"seconds", kMax, {}}, {"from", kMax, {}}, {"until", kMax, {}}}};
  std::array<TextParameter, 3> texts = {
      {{"format", "folded"}, {"kind", ""}, {"value", ""}}};
  const auto wrong = ReadParameters(request.parameters, parameters, texts);
  if (wrong) return BadRequest(*wrong);
  const auto& [seconds, from, until] = parameters;
  if (seconds.value && (from.value || until.value)) {
    return BadRequest("seconds and from or until contradict each other");
  }
  const auto& [format_name, kind, value] = texts;
  const auto format = ParseOutputFormat(format_name.value);
  if (!format) return BadRequest(format.error().message());
  // The second that is running counts, which time() cuts off.
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
  const WantedKinds wanted = {.kind = kind.value, .value = value.value};
  const auto known = KnowsKinds(wanted, KindsOf(profiles));
  if (!known) return BadRequest(known.error().message());
  return Make(request, *format, [&]() -> ksym::Result<std::string> {
    ProfileMerger merger = wanted.merger();
    for (const auto& profile : profiles) merger.Add(*profile);
    profd::Profile merged = std::move(merger).Finish();
    if (!value.value.empty()) {
      auto shown = ChooseKind(value.value, RowOf(*format), merged);
      if (!shown) return ksym::Fail(std::move(shown.error()));
    }
    return RenderWithin(kMaxRenderedBytes, merged, *format,
                        OptionsFor(*format, labels()));
  });
}

HttpResponse HttpApi::Make(
    const HttpRequest& request, OutputFormat format,
    const std::function<ksym::Result<std::string>()>& make) const {
  auto made = room_.Make(make, request.is_gone, Clock::now() + kRoomWithin);
  if (!made) {
    return {.status = 503,
            .body = "too many answers wait to be taken\n",
            .is_refusal = true};
  }
  if (!*made) return ResponseFor(made->error());
  return {.content_type = std::string(RowOf(format).content_type),
          .body = std::move((*made)->body),
          .holds = {std::move((*made)->held)},
          .policy = kOwnPolicyPage};
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
