// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/log.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include "ksym/base/printable.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

// systemd sets JOURNAL_STREAM to the device and inode of the journal's socket;
// a child whose stderr was redirected since must not be fooled by it.
bool StderrIsJournal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status = {};
  return stream != nullptr && ::fstat(STDERR_FILENO, &status) == 0 &&
         fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kDebug:
      return spdlog::level::debug;
  }
  return spdlog::level::info;
}

// The pattern's %P: syslog's number of the message's level.
class PriorityFlag : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    switch (message.level) {
      case spdlog::level::critical:
      case spdlog::level::err:
        out.push_back('3');
        break;
      case spdlog::level::warn:
        out.push_back('4');
        break;
      case spdlog::level::debug:
      case spdlog::level::trace:
        out.push_back('7');
        break;
      default:
        out.push_back('6');
    }
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PriorityFlag>();
  }
};

std::string_view Prefix(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return "error: ";
    case LogLevel::kWarning:
      return "warning: ";
    default:
      return "";
  }
}

struct LogState {
  std::mutex mutex;
  LogLimiter limiter;
};

LogState& State() {
  static LogState state;
  return state;
}

}  // namespace

LogLevel ParseLogLevel(std::string_view name) {
  if (name == "error") return LogLevel::kError;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "debug") return LogLevel::kDebug;
  return LogLevel::kInfo;
}

std::optional<uint64_t> LogLimiter::Allow(std::string_view kind,
                                          Clock::time_point now) {
  auto found = kinds_.find(kind);
  if (found == kinds_.end()) {
    found = kinds_.emplace(std::string(kind), Kind{.begin = now}).first;
  }
  Kind& state = found->second;
  if (now - state.begin >= kPeriod) {
    state.begin = now;
    state.printed = 0;
  }
  if (state.printed == kMaxPerPeriod) {
    ++state.held_back;
    return std::nullopt;
  }
  ++state.printed;
  return std::exchange(state.held_back, 0);
}

void StartLog(LogLevel level, const std::string& program) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PriorityFlag>('P').set_pattern(
      StderrIsJournal() ? "<%P>%v" : program + ": %v");
  auto logger = std::make_shared<spdlog::logger>(
      program, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(std::move(formatter));
  // A stderr that cannot be written is no reason to stop, nor to say so there.
  logger->set_error_handler([](const std::string&) {});
  spdlog::set_default_logger(std::move(logger));
  SetLogLevel(level);
}

void SetLogLevel(LogLevel level) { spdlog::set_level(SpdlogLevel(level)); }

void Log(LogLevel level, std::string_view text) {
  while (!text.empty()) {
    std::string line(Prefix(level));
    ksym::AppendPrintable(ksym::TakeField(text, '\n'), line);
    spdlog::log(SpdlogLevel(level), spdlog::string_view_t(line));
  }
}

void LogSome(LogLevel level, std::string_view kind, std::string_view text) {
  std::optional<uint64_t> held_back;
  {
    LogState& state = State();
    const std::lock_guard lock(state.mutex);
    held_back = state.limiter.Allow(kind, LogLimiter::Clock::now());
  }
  // Printed without the lock: writing to stderr may block, and others would
  // wait even to be held back.
  if (!held_back) return;
  if (*held_back == 0) return Log(level, text);
  Log(level,
      fmt::format("{} ({} more like this were not printed)", text, *held_back));
}

}  // namespace profd
