// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/history_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/base/utc_time.h"
#include "daemon/profile/kind_select.h"
#include "daemon/profile/parked.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;

constexpr uint64_t kDefaultSeconds = 900;
constexpr uint64_t kDefaultFunctionRows = 1000;
constexpr uint64_t kDefaultTimelineRows = 20;
constexpr uint64_t kDefaultFlameNodes = 32'768;
constexpr uint64_t kMaxNumber = std::numeric_limits<uint32_t>::max();

constexpr auto kNumbers = std::to_array<std::string_view>(
    {"seconds", "from", "until", "before", "before_until", "step", "rows",
     "top", "nodes"});
constexpr auto kTexts =
    std::to_array<std::string_view>({"function", "kind", "by", "format"});

}  // namespace

std::string TextOf(const AskedTime& time) {
  const std::string from = UtcTimeText(time.from_ns());
  const std::string until = UtcTimeText(time.until_ns());
  if (!time.by_slice) return fmt::format("{} UTC to {} UTC", from, until);
  return fmt::format("{}.{:03} UTC to {}.{:03} UTC", from, time.from_ms, until,
                     time.until_ms);
}

HistoryParameters::HistoryParameters(std::vector<NumberParameter> numbers,
                                     std::vector<TextParameter> texts)
    : numbers_(std::move(numbers)), texts_(std::move(texts)) {
  for (const std::string_view name : kNumbers) {
    const bool is_there =
        std::ranges::find(numbers_, name, &NumberParameter::name) !=
        numbers_.end();
    if (!is_there) numbers_.push_back({name, kMaxNumber});
  }
  numbers_.push_back({"lanes", 1});
  for (const std::string_view name : kTexts) texts_.push_back({name});
}

std::optional<std::string> HistoryParameters::Read(
    const std::multimap<std::string, std::string>& given) {
  if (auto wrong = ReadParameters(given, numbers_, texts_)) return wrong;
  const auto from = Given("from");
  const auto until = Given("until");
  const auto seconds = Given("seconds");
  if (seconds && (from || until)) {
    return "seconds and from or until contradict each other";
  }
  // time() cuts the second off that is running, and its samples with it.
  const auto now = static_cast<uint64_t>(::time(nullptr)) + 1;
  AskedTime asked = {.until = std::min(until.value_or(now), kMaxNumber)};
  asked.from = from.value_or(
      asked.until - std::min(asked.until, seconds.value_or(kDefaultSeconds)));
  const auto time = TimeOf("from", "until", asked);
  if (!time) return "from is not before until";
  time_ = *time;
  return std::nullopt;
}

std::optional<AskedTime> HistoryParameters::TimeOf(std::string_view from,
                                                   std::string_view until,
                                                   AskedTime seconds) const {
  AskedTime time = seconds;
  const auto from_ms = NumberOf(from).thousandths;
  const auto until_ms = NumberOf(until).thousandths;
  time.from_ms = from_ms.value_or(0);
  time.until_ms = until_ms.value_or(0);
  time.by_slice = from_ms || until_ms;
  if (time.from_ns() >= time.until_ns()) return std::nullopt;
  return time;
}

Result<std::optional<AskedTime>> HistoryParameters::TimeBefore() const {
  const auto from = Given("before");
  const auto until = Given("before_until");
  if (!from && !until) return std::nullopt;
  const auto time =
      TimeOf("before", "before_until",
             {.from = from.value_or(0), .until = until.value_or(0)});
  if (time) return time;
  return Fail(ErrorCode::kInvalid, "before is not before before_until");
}

const NumberParameter& HistoryParameters::NumberOf(
    std::string_view name) const {
  return *std::ranges::find(numbers_, name, &NumberParameter::name);
}

std::string HistoryParameters::Text(std::string_view name,
                                    std::string_view otherwise) const {
  const auto found = std::ranges::find(texts_, name, &TextParameter::name);
  return std::string(found->value.empty() ? otherwise : found->value);
}

size_t HistoryParameters::FlameNodes() const {
  return std::clamp<uint64_t>(Number("nodes", kDefaultFlameNodes), 1,
                              kMaxFlameNodes);
}

size_t HistoryParameters::FunctionRows() const {
  return std::clamp<uint64_t>(Number("top", kDefaultFunctionRows), 1,
                              kMaxFunctionRows);
}

uint64_t HistoryParameters::TimelineRows() const {
  return Number("rows", kDefaultTimelineRows);
}

Result<OutputFormat> HistoryParameters::Format() const {
  return ParseOutputFormat(Text("format", "folded"));
}

std::string RenderHistoryDifference(Profile earlier, Profile later,
                                    const DifferenceNames& names) {
  FoldParked(earlier);
  FoldParked(later);
  return RenderDifferenceData(earlier, later, names);
}

Result<std::string> RenderHistoryProfile(Profile profile, OutputFormat format,
                                         const OutputOptions& options) {
  const FormatRow& row = RowOf(format);
  if (auto chosen = ChooseKind("", row, profile); !chosen) {
    return Fail(std::move(chosen.error()));
  }
  ArrangeParked(ParkedStacks::kFolded, row, profile);
  return RenderWithin(kMaxRenderedBytes, profile, format, options);
}

HttpResponse RespondInTurn(
    ResponseRoom& room, const HttpRequest& request,
    const std::function<Result<HistoryAnswerText>()>& make,
    HttpResponse (*response_for)(const ksym::Error&)) {
  HistoryAnswerText answer;
  auto made = room.Make(
      [&]() -> Result<std::string> {
        auto text = make();
        if (!text) return Fail(std::move(text.error()));
        answer = std::move(*text);
        return std::move(answer.body);
      },
      request.is_gone, std::chrono::steady_clock::now() + kHistoryTurnWithin);
  if (!made) {
    return {
        .status = 503, .body = "others ask: try again\n", .is_refusal = true};
  }
  if (!*made) return response_for(made->error());
  return {.content_type = std::string(answer.content_type),
          .body = std::move((*made)->body),
          .holds = {std::move((*made)->held)},
          .policy = answer.policy};
}

}  // namespace profd
