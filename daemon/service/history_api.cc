// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/history_api.h"
#include "daemon/service/counted_cpu.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/base/utc_time.h"
#include "daemon/history/query_json.h"
#include "daemon/output/difference_page.h"
#include "daemon/output/flamegraph.h"
#include "daemon/output/format.h"
#include "daemon/profile/kind_select.h"
#include "daemon/profile/parked.h"
#include "daemon/service/http_parameters.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using QueryClock = std::chrono::steady_clock;

constexpr uint64_t kDefaultHistorySeconds = 900;
constexpr uint64_t kDefaultFunctionRows = 1000;
constexpr uint64_t kDefaultTimelineRows = 20;
constexpr std::string_view kJsonType = "application/json";

std::string NameOfTime(const history::Selection& selection) {
  return fmt::format("{} UTC to {} UTC", UtcTimeText(selection.from_unix_ns),
                     UtcTimeText(selection.until_unix_ns));
}

ksym::Error NothingKnownOf(const history::Selection& selection) {
  return {ErrorCode::kNotFound, "nothing is known of " + NameOfTime(selection)};
}

std::optional<history::TimelineBy> TimelineByOf(std::string_view text) {
  if (text == "all") return history::TimelineBy::kAll;
  if (text == "unit") return history::TimelineBy::kUnit;
  if (text == "container") return history::TimelineBy::kContainer;
  if (text == "pod") return history::TimelineBy::kPod;
  if (text == "comm") return history::TimelineBy::kCommand;
  if (text == "pid") return history::TimelineBy::kProcess;
  return std::nullopt;
}

}  // namespace

// One request: what it asks for, and the answer.
class HistoryApi::Query {
 public:
  Query(std::string folder, const HttpRequest& request, const Labels& labels,
        ServiceCounters& counters)
      : folder_(std::move(folder)),
        request_(request),
        labels_(labels),
        cpu_(counters.history_query_cpu_ns) {}

  // The reason why the request is not understood, or nothing.
  std::optional<std::string> Read() {
    if (auto wrong = ReadParameters(request_.parameters, numbers_, texts_)) {
      return wrong;
    }
    auto& [seconds, from, until, before, before_until, step, rows, top, nodes,
           pid, lanes] = numbers_;
    auto& [unit, container, pod, command, function, kind, by, format] = texts_;
    if (seconds.value && (from.value || until.value)) {
      return "seconds and from or until contradict each other";
    }
    // time() cuts the second off that is running, and its samples with it.
    const auto now = static_cast<uint64_t>(::time(nullptr)) + 1;
    const uint64_t end = until.value.value_or(now);
    const uint64_t begin = from.value.value_or(
        end - std::min(end, seconds.value.value_or(kDefaultHistorySeconds)));
    if (begin >= end) return "from is not before until";
    selection_ = {.from_unix_ns = begin * kNsPerSecond,
                  .until_unix_ns = end * kNsPerSecond,
                  .unit = unit.value,
                  .container = container.value,
                  .pod = pod.value,
                  .command = command.value,
                  .kind = kind.value,
                  .function = function.value,
                  .pid = {}};
    if (pid.value) selection_.pid = static_cast<uint32_t>(*pid.value);
    return std::nullopt;
  }

  std::string_view content_type() const { return content_type_; }
  std::string_view policy() const { return policy_; }

  // In the thread and at the time in which it may use memory.
  Result<std::string> Make() {
    deadline_ = QueryClock::now() + kQueryWithin;
    const std::string_view path = request_.path;
    if (path.ends_with("/files")) return MakeFiles();
    if (path.ends_with("/timeline")) return MakeTimeline();
    if (path.ends_with("/functions")) return MakeFunctions();
    if (path.ends_with("/flame")) return MakeFlame();
    if (path.ends_with("/difference")) return MakeDifference();
    return MakeProfile();
  }

 private:
  history::QueryBounds bounds() const {
    return {.max_bytes = kMaxAnswerBytes, .is_over = [this] {
              cpu_.Count();
              return request_.is_gone() || QueryClock::now() > deadline_;
            }};
  }

  Result<std::string> MakeFiles() {
    // All of them, if nothing is said.
    if (request_.parameters.empty()) selection_.from_unix_ns = 0;
    const auto answer = history::ReadListing(folder_, selection_, bounds());
    if (!answer) return Fail(answer.error());
    return RenderListingJson(*answer);
  }

  Result<std::string> MakeTimeline() {
    const auto by = TimelineByOf(Text("by", "all"));
    if (!by) {
      return Fail(ErrorCode::kInvalid,
                  "by is one of all, unit, container, pod, comm, pid");
    }
    const auto answer =
        history::ReadTimeline(folder_,
                              {.selection = selection_,
                               .step_ns = Number("step", 10) * kNsPerSecond,
                               .by = *by,
                               .rows = Number("rows", kDefaultTimelineRows),
                               .has_lanes = Number("lanes", 0) == 1},
                              bounds());
    if (!answer) return Fail(answer.error());
    return RenderTimelineJson(*answer);
  }

  Result<std::string> MakeFunctions() {
    const auto answer = history::ReadFunctions(folder_, selection_, bounds());
    if (!answer) return Fail(answer.error());
    return RenderFunctionsJson(
        *answer, std::clamp<uint64_t>(Number("top", kDefaultFunctionRows), 1,
                                      kMaxFunctionRows));
  }

  // As the page of a flame graph takes it.
  Result<Profile> ReadTree(const history::Selection& selection) {
    auto answer = history::ReadFlame(
        folder_, selection,
        std::clamp<uint64_t>(Number("nodes", kFlameNodes), 1, kMaxFlameNodes),
        bounds());
    if (!answer) return Fail(std::move(answer.error()));
    if (answer->coverage.parts == 0) return Fail(NothingKnownOf(selection));
    KeepFirstKind(answer->profile);
    return std::move(answer->profile);
  }

  Result<std::string> MakeFlame() {
    const auto profile = ReadTree(selection_);
    if (!profile) return Fail(profile.error());
    return RenderFlamegraphData(*profile,
                                OptionsFor(OutputFormat::kFlamegraph, labels_));
  }

  Result<std::string> MakeDifference() {
    history::Selection before = selection_;
    before.from_unix_ns = Number("before", 0) * kNsPerSecond;
    before.until_unix_ns = Number("before_until", 0) * kNsPerSecond;
    if (before.from_unix_ns >= before.until_unix_ns) {
      return Fail(ErrorCode::kInvalid, "before is not before before_until");
    }
    auto earlier = ReadTree(before);
    if (!earlier) return Fail(earlier.error());
    auto later = ReadTree(selection_);
    if (!later) return Fail(later.error());
    FoldParked(*earlier);
    FoldParked(*later);
    const std::string before_name = NameOfTime(before);
    const std::string after_name = NameOfTime(selection_);
    return RenderDifferenceData(*earlier, *later, {before_name, after_name});
  }

  // In a format for other programs: all kinds of samples, processes and labels.
  Result<std::string> MakeProfile() {
    const auto format = ParseOutputFormat(Text("format", "folded"));
    if (!format) return Fail(ErrorCode::kInvalid, format.error().message());
    auto answer = history::ReadRange(folder_, selection_, bounds());
    if (!answer) return Fail(std::move(answer.error()));
    if (answer->coverage.parts == 0) return Fail(NothingKnownOf(selection_));
    Profile& profile = answer->profile;
    const FormatRow& row = RowOf(*format);
    if (auto chosen = ChooseKind("", row, profile); !chosen) {
      return Fail(std::move(chosen.error()));
    }
    ArrangeParked(ParkedStacks::kFolded, row, profile);
    content_type_ = row.content_type;
    policy_ = kOwnPolicyPage;
    return RenderWithin(kMaxRenderedBytes, profile, *format,
                        OptionsFor(*format, labels_));
  }

  uint64_t Number(std::string_view name, uint64_t otherwise) const {
    return std::ranges::find(numbers_, name, &NumberParameter::name)
        ->value.value_or(otherwise);
  }
  std::string Text(std::string_view name, std::string_view otherwise) const {
    const auto found = std::ranges::find(texts_, name, &TextParameter::name);
    return std::string(found->value.empty() ? otherwise : found->value);
  }

  static constexpr uint64_t kMaxNumber = std::numeric_limits<uint32_t>::max();

  const std::string folder_;
  const HttpRequest& request_;
  const Labels& labels_;
  mutable CountedCpu cpu_;
  std::array<NumberParameter, 11> numbers_ = {{{"seconds", kMaxNumber},
                                               {"from", kMaxNumber},
                                               {"until", kMaxNumber},
                                               {"before", kMaxNumber},
                                               {"before_until", kMaxNumber},
                                               {"step", kMaxNumber},
                                               {"rows", kMaxNumber},
                                               {"top", kMaxNumber},
                                               {"nodes", kMaxNumber},
                                               {"pid", kMaxNumber},
                                               {"lanes", 1}}};
  std::array<TextParameter, 8> texts_ = {{{"unit"},
                                          {"container"},
                                          {"pod"},
                                          {"command"},
                                          {"function"},
                                          {"kind"},
                                          {"by"},
                                          {"format"}}};
  history::Selection selection_;
  QueryClock::time_point deadline_;
  std::string_view content_type_ = kJsonType;
  std::string_view policy_ = kNoPage;
};

void HistoryApi::SetFolder(std::string folder) {
  const std::lock_guard lock(mutex_);
  folder_ = std::move(folder);
}

std::string HistoryApi::folder() const {
  const std::lock_guard lock(mutex_);
  return folder_;
}

HttpResponse HistoryApi::Respond(const HttpRequest& request,
                                 const Labels& labels) const {
  // A copy, as a reload may name another one while the query reads.
  std::string folder = this->folder();
  if (folder.empty()) {
    return {.status = 404, .body = "no history is kept: see history.enabled\n"};
  }
  Query query(std::move(folder), request, labels, counters_);
  // Before the room is entered: what is not understood takes no turn.
  if (const auto wrong = query.Read()) return BadRequest(*wrong);
  auto made = room_.Make([&] { return query.Make(); }, request.is_gone,
                         QueryClock::now() + kTurnWithin);
  if (!made) {
    return {.status = 503,
            .body = "others ask the history: try again\n",
            .is_refusal = true};
  }
  if (!*made) return ResponseFor(made->error());
  return {.content_type = std::string(query.content_type()),
          .body = std::move((*made)->body),
          .holds = {std::move((*made)->held)},
          .policy = query.policy()};
}

}  // namespace profd
