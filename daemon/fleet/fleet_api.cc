// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/fleet_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/base/now_ns.h"
#include "daemon/base/utc_time.h"
#include "daemon/fleet/names_json.h"
#include "daemon/history/query_json.h"
#include "daemon/http/page_files.h"
#include "daemon/output/difference_page.h"
#include "daemon/output/flamegraph.h"
#include "daemon/output/format.h"
#include "daemon/profile/kind_select.h"
#include "daemon/profile/parked.h"
#include "daemon/service/history_page.h"
#include "daemon/service/http_parameters.h"

namespace profd::fleet {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using QueryClock = std::chrono::steady_clock;

constexpr uint64_t kDefaultSeconds = 900;
constexpr uint64_t kDefaultFunctionRows = 1000;
constexpr uint64_t kMaxFunctionRows = 10'000;
constexpr uint64_t kDefaultTimelineRows = 20;
constexpr uint64_t kFlameNodes = 32'768;
constexpr uint64_t kMaxFlameNodes = 65'536;
// A longer name is none that a service sends.
constexpr size_t kMaxTextBytes = 1024;
constexpr std::string_view kJsonType = "application/json";
constexpr std::string_view kBefore = "before_";
constexpr std::array<std::string_view, 6> kPaths = {
    "timeline", "functions", "flame", "difference", "profile", "names"};

// What a time and its filters are called beside what they are compared with.
std::string NameOf(const Question& question) {
  std::string name =
      fmt::format("{} UTC to {} UTC", UtcTimeText(question.from * kNsPerSecond),
                  UtcTimeText(question.until * kNsPerSecond));
  for (const NameFilter& filter : kNameFilters) {
    const std::string& text = question.*filter.member;
    if (!text.empty()) name += fmt::format(", {} {}", filter.name, text);
  }
  return name;
}

HttpResponse ResponseOf(const ksym::Error& error) {
  HttpResponse response = ResponseFor(error);
  // Neither the request's fault nor ours.
  if (response.status == 500) response.status = 502;
  return response;
}

}  // namespace

// One request: what it asks for, and the answer.
class FleetApi::Query {
 public:
  Query(Fleet& fleet, const HttpRequest& request)
      : fleet_(fleet), request_(request) {
    for (const std::string_view name : {"by", "format", "kind", "function"}) {
      texts_.push_back({name});
    }
    for (const NameFilter& filter : kNameFilters) {
      texts_.push_back({filter.name});
      before_names_.push_back(std::string(kBefore) += filter.name);
    }
    for (const std::string& name : before_names_) texts_.push_back({name});
  }

  // The reason why the request is not understood, or nothing.
  std::optional<std::string> Read() {
    if (auto wrong = ReadParameters(request_.parameters, numbers_, texts_)) {
      return wrong;
    }
    for (const TextParameter& text : texts_) {
      if (text.value.size() > kMaxTextBytes) {
        return fmt::format("{} is too long", text.name);
      }
    }
    const auto& [seconds, from, until, before, before_until, step, rows, top,
                 nodes, lanes] = numbers_;
    if (seconds.value && (from.value || until.value)) {
      return "seconds and from or until contradict each other";
    }
    // time() cuts the second off that is running, and its samples with it.
    const auto now = static_cast<uint64_t>(::time(nullptr)) + 1;
    const uint64_t end = std::min(until.value.value_or(now), kMaxNumber);
    const uint64_t begin = from.value.value_or(
        end - std::min(end, seconds.value.value_or(kDefaultSeconds)));
    if (begin >= end) return "from is not before until";
    question_ = {.from = static_cast<uint32_t>(begin),
                 .until = static_cast<uint32_t>(end),
                 .kind = Text("kind", ""),
                 .function = Text("function", "")};
    for (const NameFilter& filter : kNameFilters) {
      question_.*filter.member = Text(filter.name, "");
    }
    return std::nullopt;
  }

  std::string_view content_type() const { return content_type_; }
  std::string_view policy() const { return policy_; }

  // In the thread and at the time in which it may use memory.
  Result<std::string> Make() {
    bounds_ = {.deadline = QueryClock::now() + kAnswerWithin,
               .max_bytes = kMaxAnswerBytes,
               .is_over = request_.is_gone};
    const std::string_view path = request_.path;
    if (path.ends_with("/names")) return MakeNames();
    if (path.ends_with("/timeline")) return MakeTimeline();
    if (path.ends_with("/functions")) return MakeFunctions();
    if (path.ends_with("/flame")) return MakeFlame();
    if (path.ends_with("/difference")) return MakeDifference();
    return MakeProfile();
  }

 private:
  Result<By> WantedBy() const {
    const auto by = ParseBy(Text("by", "all"));
    if (by) return *by;
    return Fail(ErrorCode::kInvalid,
                "by is one of all, service, host, comm, unit, pod, version");
  }

  Result<std::string> MakeNames() {
    const auto by = WantedBy();
    if (!by) return Fail(by.error());
    const auto answer = fleet_.ReadNames(question_, *by, bounds_);
    if (!answer) return Fail(answer.error());
    return RenderNamesJson(*answer);
  }

  Result<std::string> MakeTimeline() {
    const auto by = WantedBy();
    if (!by) return Fail(by.error());
    const auto answer = fleet_.ReadTimeline(
        question_,
        {.by = *by,
         .step = static_cast<uint32_t>(
             Number("step", StepFor(question_.until - question_.from))),
         .rows = static_cast<uint32_t>(Number("rows", kDefaultTimelineRows)),
         .has_lanes = Number("lanes", 0) == 1},
        bounds_);
    if (!answer) return Fail(answer.error());
    return history::RenderTimelineJson(*answer);
  }

  // A few hundred of them, if nothing is said.
  static uint64_t StepFor(uint64_t seconds) {
    constexpr std::array<uint64_t, 5> kSteps = {10, 60, 300, 900, 3600};
    constexpr uint64_t kUsualSteps = 400;
    for (const uint64_t step : kSteps) {
      if (seconds / step <= kUsualSteps) return step;
    }
    return seconds / kUsualSteps + 1;
  }

  Result<std::string> MakeFunctions() {
    const auto answer = fleet_.ReadFunctions(question_, bounds_);
    if (!answer) return Fail(answer.error());
    return history::RenderFunctionsJson(
        *answer, std::clamp<uint64_t>(Number("top", kDefaultFunctionRows), 1,
                                      kMaxFunctionRows));
  }

  // As the page of a flame graph takes it.
  Result<Profile> ReadTree(const Question& question) {
    auto answer = fleet_.ReadFlame(
        question,
        std::clamp<uint64_t>(Number("nodes", kFlameNodes), 1, kMaxFlameNodes),
        bounds_);
    if (!answer) return Fail(std::move(answer.error()));
    KeepFirstKind(answer->profile);
    return std::move(answer->profile);
  }

  Result<std::string> MakeFlame() {
    const auto profile = ReadTree(question_);
    if (!profile) return Fail(profile.error());
    return RenderFlamegraphData(*profile, {});
  }

  // Of another time, of other samples of the same one, or of both.
  Result<std::string> MakeDifference() {
    Question before = question_;
    bool differs = false;
    for (const NameFilter& filter : kNameFilters) {
      const std::string text = Text(std::string(kBefore) += filter.name, "");
      if (text.empty()) continue;
      before.*filter.member = text;
      differs = true;
    }
    const auto from = Given("before");
    const auto until = Given("before_until");
    if (from || until || !differs) {
      before.from = static_cast<uint32_t>(from.value_or(0));
      before.until = static_cast<uint32_t>(until.value_or(0));
      if (before.from >= before.until) {
        return Fail(ErrorCode::kInvalid, "before is not before before_until");
      }
    }
    auto earlier = ReadTree(before);
    if (!earlier) return Fail(earlier.error());
    auto later = ReadTree(question_);
    if (!later) return Fail(later.error());
    FoldParked(*earlier);
    FoldParked(*later);
    const std::string before_name = NameOf(before);
    const std::string after_name = NameOf(question_);
    return RenderDifferenceData(*earlier, *later, {before_name, after_name});
  }

  // In a format for other programs.
  Result<std::string> MakeProfile() {
    const auto format = ParseOutputFormat(Text("format", "folded"));
    if (!format) return Fail(ErrorCode::kInvalid, format.error().message());
    auto answer = fleet_.ReadRange(question_, bounds_);
    if (!answer) return Fail(std::move(answer.error()));
    Profile& profile = answer->profile;
    const FormatRow& row = RowOf(*format);
    if (auto chosen = ChooseKind("", row, profile); !chosen) {
      return Fail(std::move(chosen.error()));
    }
    ArrangeParked(ParkedStacks::kFolded, row, profile);
    content_type_ = row.content_type;
    policy_ = kOwnPolicyPage;
    return RenderWithin(kMaxRenderedBytes, profile, *format, {});
  }

  std::optional<uint64_t> Given(std::string_view name) const {
    return std::ranges::find(numbers_, name, &NumberParameter::name)->value;
  }
  uint64_t Number(std::string_view name, uint64_t otherwise) const {
    return Given(name).value_or(otherwise);
  }
  std::string Text(std::string_view name, std::string_view otherwise) const {
    const auto found = std::ranges::find(texts_, name, &TextParameter::name);
    return std::string(found->value.empty() ? otherwise : found->value);
  }

  static constexpr uint64_t kMaxNumber = std::numeric_limits<uint32_t>::max();

  Fleet& fleet_;
  const HttpRequest& request_;
  std::array<NumberParameter, 10> numbers_ = {{{"seconds", kMaxNumber},
                                               {"from", kMaxNumber},
                                               {"until", kMaxNumber},
                                               {"before", kMaxNumber},
                                               {"before_until", kMaxNumber},
                                               {"step", kMaxNumber},
                                               {"rows", kMaxNumber},
                                               {"top", kMaxNumber},
                                               {"nodes", kMaxNumber},
                                               {"lanes", 1}}};
  std::vector<std::string> before_names_;
  std::vector<TextParameter> texts_;  // whose names may be of before_names_
  Question question_;
  FleetBounds bounds_;
  std::string_view content_type_ = kJsonType;
  std::string_view policy_ = kNoPage;
};

HttpResponse FleetApi::Respond(const HttpRequest& request) {
  const HistoryPage::File* const file =
      HistoryPage::Find(request.path, HistoryPage::Of::kFleet);
  const auto place = places_.Take(
      file == nullptr ? HttpKind::kHistory : HttpKind::kPage, request.client);
  if (!place) {
    const bool is_all = place.error() == HttpPlaces::Refusal::kAllTaken;
    return {.status = is_all ? 503 : 429,
            .body = "too many requests\n",
            .is_refusal = true};
  }
  HttpResponse response =
      file == nullptr ? Answer(request) : HistoryPage::Respond(*file);
  response.holds.push_back(*place);
  return response;
}

HttpResponse FleetApi::Answer(const HttpRequest& request) {
  std::string_view path = request.path;
  if (!path.starts_with(kHistoryPath)) {
    return {.status = 404, .body = "only the fleet's page is here\n"};
  }
  path.remove_prefix(kHistoryPath.size());
  if (std::ranges::find(kPaths, path) == kPaths.end()) {
    return {.status = 404, .body = "a fleet has no such answer\n"};
  }
  Query query(fleet_, request);
  // Before the room is entered: what is not understood takes no turn.
  if (const auto wrong = query.Read()) return BadRequest(*wrong);
  auto made = room_.Make([&] { return query.Make(); }, request.is_gone,
                         QueryClock::now() + kTurnWithin);
  if (!made) {
    return {
        .status = 503, .body = "others ask: try again\n", .is_refusal = true};
  }
  if (!*made) return ResponseOf(made->error());
  return {.content_type = std::string(query.content_type()),
          .body = std::move((*made)->body),
          .holds = {std::move((*made)->held)},
          .policy = query.policy()};
}

}  // namespace profd::fleet
