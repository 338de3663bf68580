// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/fleet_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/fleet/names_json.h"
#include "daemon/history/query_json.h"
#include "daemon/http/page_files.h"
#include "daemon/output/flamegraph.h"
#include "daemon/output/format.h"
#include "daemon/profile/kind_select.h"
#include "daemon/service/history_answers.h"
#include "daemon/service/history_page.h"

namespace profd::fleet {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using QueryClock = std::chrono::steady_clock;

// A longer name is none that a service sends.
constexpr size_t kMaxTextBytes = 1024;
// Names of one filter.
constexpr size_t kMaxFilterNames = 64;
using Parameters = std::multimap<std::string, std::string>;
constexpr std::array<std::string_view, 6> kPaths = {
    "timeline", "functions", "flame", "difference", "profile", "names"};

std::string NameOf(const Question& question) {
  std::string name = TextOf({.from = question.from, .until = question.until});
  for (const NameFilter& filter : kNameFilters) {
    const Names& names = question.*filter.member;
    if (names.empty()) continue;
    name += fmt::format(", {} {}", filter.name, names.front());
    if (names.size() > 1) name += fmt::format(" and {} more", names.size() - 1);
  }
  return name;
}

HttpResponse ResponseOf(const ksym::Error& error) {
  HttpResponse response = ResponseFor(error);
  // Neither the request's fault nor ours.
  if (response.status == 500) response.status = 502;
  return response;
}

// The names that a request gives for a filter, each once and in an order of
// their own. An empty one asks for nothing.
Names NamesIn(const Parameters& given, std::string_view filter) {
  const auto [begin, end] = given.equal_range(std::string(filter));
  std::set<std::string> names;
  for (auto at = begin; at != end; ++at) {
    if (!at->second.empty()) names.insert(at->second);
  }
  return {names.begin(), names.end()};
}

// The parameters that are no names, each of which is given once.
Parameters WithoutNames(const Parameters& given) {
  Parameters others = given;
  for (const NameFilter& filter : kNameFilters) {
    others.erase(std::string(filter.name));
    others.erase(std::string(filter.name_before));
  }
  return others;
}

}  // namespace

// One request: what it asks for, and the answer.
class FleetApi::Query {
 public:
  Query(Fleet& fleet, const HttpRequest& request)
      : fleet_(fleet), request_(request) {}

  // The reason why the request is not understood, or nothing.
  std::optional<std::string> Read() {
    const Parameters& given = request_.parameters;
    for (const auto& [name, text] : given) {
      if (text.size() > kMaxTextBytes) return name + " is too long";
    }
    if (auto wrong = parameters_.Read(WithoutNames(given))) return wrong;
    question_.kind = parameters_.Text("kind", "");
    question_.function = parameters_.Text("function", "");
    SetTime(parameters_.time(), question_);
    for (const NameFilter& filter : kNameFilters) {
      for (const std::string_view name : {filter.name, filter.name_before}) {
        if (NamesIn(given, name).size() > kMaxFilterNames) {
          return fmt::format("{} is given more than {} times", name,
                             kMaxFilterNames);
        }
      }
      question_.*filter.member = NamesIn(given, filter.name);
    }
    return std::nullopt;
  }

  // In the thread and at the time in which it may use memory.
  Result<HistoryAnswerText> Make() {
    bounds_ = {.deadline = QueryClock::now() + kAnswerWithin,
               .max_bytes = kMaxHistoryAnswerBytes,
               .is_over = request_.is_gone};
    const std::string_view path = request_.path;
    if (path.ends_with("/profile")) return MakeProfile();
    auto body = MakeJson(path);
    if (!body) return Fail(std::move(body.error()));
    return HistoryAnswerText{.body = std::move(*body)};
  }

 private:
  static void SetTime(const AskedTime& time, Question& question) {
    question.from = static_cast<uint32_t>(time.from);
    question.until = static_cast<uint32_t>(time.until);
  }

  Result<By> WantedBy() const {
    const auto by = ParseBy(parameters_.Text("by", "all"));
    if (by) return *by;
    return Fail(ErrorCode::kInvalid,
                "by is one of all, service, host, comm, unit, pod, version");
  }

  Result<std::string> MakeJson(std::string_view path) {
    if (path.ends_with("/names")) return MakeNames();
    if (path.ends_with("/timeline")) return MakeTimeline();
    if (path.ends_with("/functions")) return MakeFunctions();
    if (path.ends_with("/flame")) return MakeFlame();
    return MakeDifference();
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
         .step = static_cast<uint32_t>(parameters_.Number(
             "step", StepFor(question_.until - question_.from))),
         .rows = static_cast<uint32_t>(parameters_.TimelineRows()),
         .has_lanes = parameters_.WantsLanes()},
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
    return history::RenderFunctionsJson(*answer, parameters_.FunctionRows());
  }

  // As the page of a flame graph takes it.
  Result<Profile> ReadTree(const Question& question) {
    auto answer = fleet_.ReadFlame(question, parameters_.FlameNodes(), bounds_);
    if (!answer) return Fail(std::move(answer.error()));
    KeepFirstKind(answer->profile);
    return std::move(answer->profile);
  }

  Result<std::string> MakeFlame() {
    const auto profile = ReadTree(question_);
    if (!profile) return Fail(profile.error());
    return RenderFlamegraphData(*profile, {});
  }

  // With another time, with other samples of the same one, or with both.
  Result<std::string> MakeDifference() {
    Question before = question_;
    bool differs = false;
    for (const NameFilter& filter : kNameFilters) {
      Names names = NamesIn(request_.parameters, filter.name_before);
      if (names.empty()) continue;
      before.*filter.member = std::move(names);
      differs = true;
    }
    const auto asked = parameters_.TimeBefore();
    if (!asked) return Fail(asked.error());
    if (const std::optional<AskedTime>& time = *asked; time) {
      SetTime(*time, before);
    } else if (!differs) {
      return Fail(ErrorCode::kInvalid, "before is not before before_until");
    }
    auto earlier = ReadTree(before);
    if (!earlier) return Fail(std::move(earlier.error()));
    auto later = ReadTree(question_);
    if (!later) return Fail(std::move(later.error()));
    return RenderHistoryDifference(std::move(*earlier), std::move(*later),
                                   {NameOf(before), NameOf(question_)});
  }

  // In a format for other programs.
  Result<HistoryAnswerText> MakeProfile() {
    const auto format = parameters_.Format();
    if (!format) return Fail(format.error());
    auto answer = fleet_.ReadRange(question_, bounds_);
    if (!answer) return Fail(std::move(answer.error()));
    auto body = RenderHistoryProfile(std::move(answer->profile), *format, {});
    if (!body) return Fail(std::move(body.error()));
    return HistoryAnswerText{.body = std::move(*body),
                             .content_type = RowOf(*format).content_type,
                             .policy = kOwnPolicyPage};
  }

  Fleet& fleet_;
  const HttpRequest& request_;
  HistoryParameters parameters_{{}, {}};
  Question question_;
  FleetBounds bounds_;
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
  return RespondInTurn(
      room_, request, [&] { return query.Make(); }, ResponseOf);
}

}  // namespace profd::fleet
