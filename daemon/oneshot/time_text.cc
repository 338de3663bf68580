// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/time_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <string>

#include "daemon/base/now_ns.h"
#include "ksym/base/byte_reader.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

// Up to the year 2554, so that nanoseconds fit.
constexpr uint64_t kMaxSeconds =
    std::numeric_limits<uint64_t>::max() / kNsPerSecond;

std::optional<uint64_t> NsOfSeconds(std::optional<uint64_t> seconds) {
  if (!seconds || *seconds > kMaxSeconds) return std::nullopt;
  return *seconds * kNsPerSecond;
}

// Local time; -1 for "look up whether it is summer time".
std::optional<uint64_t> NsOfLocal(tm parts) {
  parts.tm_isdst = -1;
  const time_t seconds = ::mktime(&parts);
  if (seconds < 0) return std::nullopt;
  return NsOfSeconds(static_cast<uint64_t>(seconds));
}

std::optional<uint64_t> ParseAgo(std::string_view text, uint64_t now) {
  if (text.size() < 3 || text.front() != '-') return std::nullopt;
  uint64_t unit = 0;
  switch (text.back()) {
    case 's':
      unit = 1;
      break;
    case 'm':
      unit = 60;
      break;
    case 'h':
      unit = 3600;
      break;
    case 'd':
      unit = 86'400;
      break;
    default:
      return std::nullopt;
  }
  const auto number = ksym::ParseUnsigned(text.substr(1, text.size() - 2), 10);
  if (!number || *number > kMaxSeconds / unit) return std::nullopt;
  const uint64_t ago = *number * unit * kNsPerSecond;
  return ago < now ? now - ago : 0;
}

// Sets what the format has. False: the text is not of that format.
bool Scan(const std::string& text, const char* format, tm& parts) {
  const char* end = ::strptime(text.c_str(), format, &parts);
  return end != nullptr && *end == '\0';
}

std::optional<uint64_t> ParseDate(const std::string& text) {
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S",
                             "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"}) {
    tm parts = {};
    if (!Scan(text, format, parts)) continue;
    // mktime(3) takes a 31st of June for the 1st of July.
    const int day = parts.tm_mday;
    tm normal = parts;
    // At noon, which no change to summer time moves to another day.
    normal.tm_hour = 12;
    normal.tm_isdst = -1;
    if (::mktime(&normal) < 0 || normal.tm_mday != day) return std::nullopt;
    return NsOfLocal(parts);
  }
  return std::nullopt;
}

std::optional<uint64_t> ParseTimeOfDay(const std::string& text, uint64_t now,
                                       std::optional<uint64_t> after) {
  const uint64_t base = after.value_or(now);
  const auto seconds = static_cast<time_t>(base / kNsPerSecond);
  tm day = {};
  if (::localtime_r(&seconds, &day) == nullptr) return std::nullopt;
  tm parts = day;
  parts.tm_sec = 0;
  if (!Scan(text, "%H:%M", parts)) {
    parts = day;
    if (!Scan(text, "%H:%M:%S", parts)) return std::nullopt;
  }
  const auto today = NsOfLocal(parts);
  if (!today) return std::nullopt;
  if (after ? *today > base : *today <= base) return today;
  // By the calendar: a day has 23 hours now and then.
  parts.tm_mday += after ? 1 : -1;
  return NsOfLocal(parts);
}

// A whole second, or another moment.
std::optional<uint64_t> ParseWhole(std::string_view text, uint64_t now_unix_ns,
                                   std::optional<uint64_t> after_unix_ns) {
  if (text == "now") return now_unix_ns;
  const std::string copy(text);
  std::optional<uint64_t> moment = ParseAgo(text, now_unix_ns);
  if (!moment) moment = ParseTimeOfDay(copy, now_unix_ns, after_unix_ns);
  if (!moment) moment = ParseDate(copy);
  if (!moment) {
    if (text.starts_with('@')) text.remove_prefix(1);
    moment = NsOfSeconds(ksym::ParseUnsigned(text, 10));
  }
  return moment;
}

// The text from its point on; empty: it has none.
std::string_view ThousandthsOf(std::string_view text) {
  const size_t point = text.find('.');
  return point == std::string_view::npos ? std::string_view()
                                         : text.substr(point);
}

// With the digits behind the second. Only seconds have them.
std::optional<uint64_t> ParseExact(std::string_view text, uint64_t now_unix_ns,
                                   std::optional<uint64_t> after_unix_ns) {
  const std::string_view digits = ThousandthsOf(text);
  const std::string_view whole = text.substr(0, text.size() - digits.size());
  const bool is_number =
      whole != "now" && whole.find_first_of("-:") == std::string_view::npos;
  const bool has_seconds = is_number || std::ranges::count(whole, ':') == 2;
  const auto more = ksym::ParseThousandths(digits.substr(1));
  if (!has_seconds || !more) return std::nullopt;
  // It may be in the second that the other one is in.
  if (after_unix_ns) {
    *after_unix_ns -=
        std::min(*after_unix_ns, *after_unix_ns % kNsPerSecond + 1);
  }
  const auto second = ParseWhole(whole, now_unix_ns, after_unix_ns);
  if (!second) return std::nullopt;
  return ksym::CheckedAdd(*second, uint64_t{*more} * 1'000'000);
}

}  // namespace

ksym::Result<uint64_t> ParseMoment(std::string_view text, uint64_t now_unix_ns,
                                   std::optional<uint64_t> after_unix_ns) {
  const auto moment = HasThousandths(text)
                          ? ParseExact(text, now_unix_ns, after_unix_ns)
                          : ParseWhole(text, now_unix_ns, after_unix_ns);
  if (moment) return *moment;
  return ksym::Fail(
      ksym::ErrorCode::kInvalid,
      fmt::format("'{}' is no time such as 02:10, '2026-11-24 02:10', -15m, "
                  "now, or seconds since 1970",
                  text));
}

bool HasThousandths(std::string_view moment) {
  return !ThousandthsOf(moment).empty();
}

std::string ExactLocalTimeText(uint64_t unix_ns) {
  return fmt::format("{}.{:03}", LocalTimeText(unix_ns),
                     unix_ns % kNsPerSecond / 1'000'000);
}

std::string LocalTimeText(uint64_t unix_ns) {
  const auto seconds = static_cast<time_t>(unix_ns / kNsPerSecond);
  tm parts = {};
  char text[64] = "?";
  if (::localtime_r(&seconds, &parts) != nullptr) {
    (void)std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  }
  return text;
}

}  // namespace profd
