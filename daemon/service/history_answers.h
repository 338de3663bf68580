// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/now_ns.h"
#include "daemon/output/difference_page.h"
#include "daemon/output/format.h"
#include "daemon/output/options.h"
#include "daemon/profile/profile.h"
#include "daemon/service/http_message.h"
#include "daemon/service/http_parameters.h"
#include "daemon/service/response_room.h"
#include "ksym/base/result.h"

namespace profd {

// What the paths /api/history/... have in common, whether they answer of one
// machine or of a fleet.

inline constexpr std::string_view kHistoryJsonType = "application/json";
// An answer while it is put together.
inline constexpr size_t kMaxHistoryAnswerBytes = size_t{48} << 20;
// So many questions are answered at once, and none is begun while answers of so
// many bytes wait to be taken.
inline constexpr ResponseRoom::Bounds kHistoryRoom = {
    .makers = 2, .bytes = size_t{32} << 20};
// How long a question waits for its turn.
inline constexpr std::chrono::seconds kHistoryTurnWithin{10};

// Times in seconds since 1970: [from, until).
struct AskedTime {
  uint64_t from = 0;
  uint64_t until = 0;
  // Thousandths besides. Where one of them was given, samples whose slice
  // begins in the time are asked for.
  uint32_t from_ms = 0;
  uint32_t until_ms = 0;
  bool by_slice = false;

  uint64_t from_ns() const {
    return from * kNsPerSecond + uint64_t{from_ms} * 1'000'000;
  }
  uint64_t until_ns() const {
    return until * kNsPerSecond + uint64_t{until_ms} * 1'000'000;
  }
};
// "2026-11-27 02:10:00 UTC to ... UTC".
std::string TextOf(const AskedTime& time);

// The parameters that all of these paths may have: a time, what a flame graph,
// a time line and a table of functions show, and texts. Not thread-safe.
class HistoryParameters {
 public:
  static constexpr size_t kMaxFlameNodes = 65'536;
  static constexpr size_t kMaxFunctionRows = 10'000;

  // With those that one path's owner has besides, or takes in its own way.
  // Their names live longer.
  HistoryParameters(std::vector<NumberParameter> numbers,
                    std::vector<TextParameter> texts);

  // The reason why a request is not understood, or nothing.
  std::optional<std::string> Read(
      const std::multimap<std::string, std::string>& given);

  // The time that Read() found: the last 15 minutes if nothing is said.
  const AskedTime& time() const { return time_; }
  // What it is compared with: `before` and `before_until`. Nothing: neither is
  // given. kInvalid: it is no time.
  ksym::Result<std::optional<AskedTime>> TimeBefore() const;

  const NumberParameter& NumberOf(std::string_view name) const;
  std::optional<uint64_t> Given(std::string_view name) const {
    return NumberOf(name).value;
  }
  uint64_t Number(std::string_view name, uint64_t otherwise) const {
    return Given(name).value_or(otherwise);
  }
  std::string Text(std::string_view name, std::string_view otherwise) const;

  // Within their bounds.
  size_t FlameNodes() const;
  size_t FunctionRows() const;
  uint64_t TimelineRows() const;
  bool WantsLanes() const { return Number("lanes", 0) == 1; }
  // kInvalid: there is no such one.
  ksym::Result<OutputFormat> Format() const;

 private:
  // With the thousandths that are given; nothing: it ends before it begins.
  std::optional<AskedTime> TimeOf(std::string_view from, std::string_view until,
                                  AskedTime seconds) const;

  std::vector<NumberParameter> numbers_;
  std::vector<TextParameter> texts_;
  AskedTime time_;
};

// The data of a flame graph of `later` compared with `earlier`.
std::string RenderHistoryDifference(Profile earlier, Profile later,
                                    const DifferenceNames& names);

// A profile in a format for other programs.
ksym::Result<std::string> RenderHistoryProfile(Profile profile,
                                               OutputFormat format,
                                               const OutputOptions& options);

// An answer, of what type and with which rights.
struct HistoryAnswerText {
  std::string body;
  std::string_view content_type = kHistoryJsonType;
  std::string_view policy = kNoPage;
};
// Makes an answer in this thread when it is its turn, as ResponseRoom::Make()
// does. 503: the turn does not come. Failures are as `response_for` says.
HttpResponse RespondInTurn(
    ResponseRoom& room, const HttpRequest& request,
    const std::function<ksym::Result<HistoryAnswerText>()>& make,
    HttpResponse (*response_for)(const ksym::Error&));

}  // namespace profd
