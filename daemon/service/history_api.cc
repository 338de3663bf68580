// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/history_api.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/history/query_json.h"
#include "daemon/output/flamegraph.h"
#include "daemon/output/format.h"
#include "daemon/profile/kind_select.h"
#include "daemon/service/counted_cpu.h"
#include "daemon/service/history_answers.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using QueryClock = std::chrono::steady_clock;

ksym::Error NothingKnownOf(const AskedTime& time) {
  return {ErrorCode::kNotFound,
          fmt::format("nothing is known of {}{}", TextOf(time),
                      time.by_slice ? history::kNoSlicesKnown : "")};
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
  Query(std::string directory, const HttpRequest& request, const Labels& labels,
        ServiceCounters& counters)
      : directory_(std::move(directory)),
        request_(request),
        labels_(labels),
        cpu_(counters.history_query_cpu_ns) {}

  // The reason why the request is not understood, or nothing.
  std::optional<std::string> Read() {
    if (auto wrong = parameters_.Read(request_.parameters)) return wrong;
    selection_ = {.unit = parameters_.Text("unit", ""),
                  .container = parameters_.Text("container", ""),
                  .pod = parameters_.Text("pod", ""),
                  .command = parameters_.Text("command", ""),
                  .kind = parameters_.Text("kind", ""),
                  .function = parameters_.Text("function", ""),
                  .pid = {}};
    SetTime(parameters_.time(), selection_);
    if (const auto pid = parameters_.Given("pid")) {
      selection_.pid = static_cast<uint32_t>(*pid);
    }
    return std::nullopt;
  }

  // In the thread and at the time in which it may use memory.
  Result<HistoryAnswerText> Make() {
    deadline_ = QueryClock::now() + kQueryWithin;
    const std::string_view path = request_.path;
    if (path.ends_with("/profile")) return MakeProfile();
    auto body = MakeJson(path);
    if (!body) return Fail(std::move(body.error()));
    return HistoryAnswerText{.body = std::move(*body)};
  }

 private:
  history::QueryBounds bounds() const {
    return {.max_bytes = kMaxHistoryAnswerBytes, .is_over = [this] {
              cpu_.Count();
              return request_.is_gone() || QueryClock::now() > deadline_;
            }};
  }

  static void SetTime(const AskedTime& time, history::Selection& selection) {
    selection.from_unix_ns = time.from_ns();
    selection.until_unix_ns = time.until_ns();
    selection.by_slice = time.by_slice;
  }

  Result<std::string> MakeJson(std::string_view path) {
    if (path.ends_with("/files")) return MakeFiles();
    if (path.ends_with("/timeline")) return MakeTimeline();
    if (path.ends_with("/functions")) return MakeFunctions();
    if (path.ends_with("/flame")) return MakeFlame();
    return MakeDifference();
  }

  Result<std::string> MakeFiles() {
    // All of them, if nothing is said.
    if (request_.parameters.empty()) selection_.from_unix_ns = 0;
    const auto answer = history::ReadListing(directory_, selection_, bounds());
    if (!answer) return Fail(answer.error());
    return RenderListingJson(*answer);
  }

  Result<std::string> MakeTimeline() {
    const auto by = TimelineByOf(parameters_.Text("by", "all"));
    if (!by) {
      return Fail(ErrorCode::kInvalid,
                  "by is one of all, unit, container, pod, comm, pid");
    }
    const auto answer =
        history::ReadTimeline(directory_,
                              {.selection = selection_,
                               .step_ns = StepNs(),
                               .by = *by,
                               .rows = parameters_.TimelineRows(),
                               .has_lanes = parameters_.WantsLanes()},
                              bounds());
    if (!answer) return Fail(answer.error());
    return RenderTimelineJson(*answer);
  }

  uint64_t StepNs() const {
    constexpr uint64_t kNsPerMs = 1'000'000;
    const NumberParameter& step = parameters_.NumberOf("step");
    return step.value.value_or(10) * kNsPerSecond +
           step.thousandths.value_or(0) * kNsPerMs;
  }

  Result<std::string> MakeFunctions() {
    const auto answer =
        history::ReadFunctions(directory_, selection_, bounds());
    if (!answer) return Fail(answer.error());
    return RenderFunctionsJson(*answer, parameters_.FunctionRows());
  }

  // As the page of a flame graph takes it.
  Result<Profile> ReadTree(const AskedTime& time) {
    history::Selection selection = selection_;
    SetTime(time, selection);
    auto answer = history::ReadFlame(directory_, selection,
                                     parameters_.FlameNodes(), bounds());
    if (!answer) return Fail(std::move(answer.error()));
    if (answer->coverage.parts == 0) return Fail(NothingKnownOf(time));
    KeepFirstKind(answer->profile);
    return std::move(answer->profile);
  }

  Result<std::string> MakeFlame() {
    const auto profile = ReadTree(parameters_.time());
    if (!profile) return Fail(profile.error());
    return RenderFlamegraphData(*profile,
                                OptionsFor(OutputFormat::kFlamegraph, labels_));
  }

  Result<std::string> MakeDifference() {
    const AskedTime& after = parameters_.time();
    const auto asked = parameters_.TimeBefore();
    if (!asked) return Fail(asked.error());
    const std::optional<AskedTime>& before = *asked;
    if (!before) {
      return Fail(ErrorCode::kInvalid, "before is not before before_until");
    }
    auto earlier = ReadTree(*before);
    if (!earlier) return Fail(std::move(earlier.error()));
    auto later = ReadTree(after);
    if (!later) return Fail(std::move(later.error()));
    return RenderHistoryDifference(std::move(*earlier), std::move(*later),
                                   {TextOf(*before), TextOf(after)});
  }

  // In a format for other programs: all kinds of samples, processes and labels.
  Result<HistoryAnswerText> MakeProfile() {
    const auto format = parameters_.Format();
    if (!format) return Fail(format.error());
    auto answer = history::ReadRange(directory_, selection_, bounds());
    if (!answer) return Fail(std::move(answer.error()));
    if (answer->coverage.parts == 0) {
      return Fail(NothingKnownOf(parameters_.time()));
    }
    auto body = RenderHistoryProfile(std::move(answer->profile), *format,
                                     OptionsFor(*format, labels_));
    if (!body) return Fail(std::move(body.error()));
    return HistoryAnswerText{.body = std::move(*body),
                             .content_type = RowOf(*format).content_type,
                             .policy = kOwnPolicyPage};
  }

  const std::string directory_;
  const HttpRequest& request_;
  const Labels& labels_;
  mutable CountedCpu cpu_;
  static constexpr uint64_t kMaxNumber = std::numeric_limits<uint32_t>::max();
  HistoryParameters parameters_{
      {{"pid", kMaxNumber},
       {"from", kMaxNumber, true},
       {"until", kMaxNumber, true},
       {"before", kMaxNumber, true},
       {"before_until", kMaxNumber, true},
       {"step", kMaxNumber, true}},
      {{"unit"}, {"container"}, {"pod"}, {"command"}}};
  history::Selection selection_;
  QueryClock::time_point deadline_;
};

void HistoryApi::SetDirectory(std::string directory) {
  const std::lock_guard lock(mutex_);
  directory_ = std::move(directory);
}

std::string HistoryApi::directory() const {
  const std::lock_guard lock(mutex_);
  return directory_;
}

HttpResponse HistoryApi::Respond(const HttpRequest& request,
                                 const Labels& labels) const {
  // A copy, as a reload may name another one while the query reads.
  std::string directory = this->directory();
  if (directory.empty()) {
    return {.status = 404, .body = "no history is kept: see history.enabled\n"};
  }
  Query query(std::move(directory), request, labels, counters_);
  // Before the room is entered: what is not understood takes no turn.
  if (const auto wrong = query.Read()) return BadRequest(*wrong);
  return RespondInTurn(
      room_, request, [&] { return query.Make(); }, ResponseFor);
}

}  // namespace profd
