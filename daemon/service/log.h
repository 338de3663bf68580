// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace profd {

enum class LogLevel : uint8_t { kError, kWarning, kInfo, kDebug };

// "error", "warning", "info" or "debug"; anything else is kInfo.
LogLevel ParseLogLevel(std::string_view name);

// Lets a few messages of a kind through per period, and counts the rest. Not
// thread-safe.
class LogLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr uint64_t kMaxPerPeriod = 5;
  static constexpr Clock::duration kPeriod = std::chrono::minutes(1);

  // Whether a message of this kind may be printed now; if so, how many were
  // not since the last one that was.
  std::optional<uint64_t> Allow(std::string_view kind, Clock::time_point now);

 private:
  struct Kind {
    Clock::time_point begin;
    uint64_t printed = 0;
    uint64_t held_back = 0;
  };
  std::map<std::string, Kind, std::less<>> kinds_;
};

// Messages go to stderr. Where that is the journal each line begins with its
// priority, "<4>", as sd-daemon(3) says; else with the program's name and the
// level. Call once, before other threads start.
void StartLog(LogLevel level, const std::string& program = "ksym-profiled");
void SetLogLevel(LogLevel level);

// Prints a line per line of the text; what could reach a terminal as a command
// is replaced. Any thread.
void Log(LogLevel level, std::string_view text);
// The same, but at most LogLimiter::kMaxPerPeriod of a kind in a minute. The
// kind is a word of ours, never one from outside: each is remembered.
void LogSome(LogLevel level, std::string_view kind, std::string_view text);

}  // namespace profd
