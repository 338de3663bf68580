// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/time_text.h"

#include <fmt/format.h>

#include <ctime>
#include <limits>
#include <string>

#include "daemon/base/now_ns.h"
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

}  // namespace

ksym::Result<uint64_t> ParseMoment(std::string_view text, uint64_t now_unix_ns,
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
  if (moment) return *moment;
  return ksym::Fail(
      ksym::ErrorCode::kInvalid,
      fmt::format("'{}' is no time such as 02:10, '2026-11-24 02:10', -15m, "
                  "now, or seconds since 1970",
                  copy));
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
