// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/clickhouse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "daemon/service/push_connection.h"

namespace profd::fleet {
namespace {

using Clock = std::chrono::steady_clock;
using ksym::ErrorCode;
using ksym::Fail;
using std::chrono::milliseconds;

constexpr milliseconds kConnectWithin(3'000);
// A status line, and headers.
constexpr size_t kHeadBytes = size_t{64} << 10;
// Chunks of an answer have lines of their own.
constexpr size_t kFramingShare = 64;
constexpr std::string_view kPrefix = "clickhouse+";

// The server's message begins with its code: "Code: 60, e.displayText() = ...".
struct ServerError {
  std::string_view code;
  ErrorCode means;
  std::string_view advice;
};
constexpr std::array<ServerError, 7> kServerErrors = {{
    {"60", ErrorCode::kNotFound, "there is no such table: "},
    {"81", ErrorCode::kNotFound, "there is no such database: "},
    {"164", ErrorCode::kPermission,
     "its user may not say how long a query may take, which wants readonly = "
     "2: "},
    {"159", ErrorCode::kLimit, "it takes too long: "},
    {"158", ErrorCode::kLimit, "there are too many rows: "},
    {"241", ErrorCode::kLimit, "it needs too much memory: "},
    {"396", ErrorCode::kLimit, "the answer is too large: "},
}};

ksym::Error ErrorOf(const PushConnection::Answer& answer) {
  std::string_view code = answer.text;
  constexpr std::string_view kCode = "Code: ";
  if (code.starts_with(kCode)) code.remove_prefix(kCode.size());
  code = code.substr(0, code.find_first_not_of("0123456789"));
  const auto* const known =
      std::ranges::find(kServerErrors, code, &ServerError::code);
  if (known != kServerErrors.end()) {
    return {known->means,
            fmt::format("the database: {}{}", known->advice, answer.text)};
  }
  return {ErrorCode::kIo, fmt::format("the database: status {}: {}",
                                      answer.status, answer.text)};
}

}  // namespace

ksym::Result<ClickHouse> ClickHouse::Make(const Settings& settings) {
  std::string text = settings.url;
  if (!text.starts_with(kPrefix)) text.insert(0, kPrefix);
  auto url = ParsePushUrl(text);
  if (!url) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("\"{}\" is no URL of the form "
                            "http://HOST:PORT/DATABASE or https://...",
                            settings.url));
  }
  return ClickHouse(std::move(*url), settings.login);
}

// Settings that 18.16 knows as later versions do. readonly=2: nothing may be
// written, and these settings may be given. wait_end_of_query: a failure has a
// status of its own, and stands never behind rows. The server counts bytes as
// it keeps them, which are more: its bound is for what is far too much. Names
// of a hundred rows may have more bytes than a query by default.
std::string ClickHouse::PathOf(milliseconds left, size_t max_bytes) const {
  const auto seconds = std::max<int64_t>(
      std::chrono::ceil<std::chrono::seconds>(left).count(), 1);
  return fmt::format(
      "{}&default_format=RowBinary&readonly=2&wait_end_of_query=1"
      "&max_execution_time={}&max_result_bytes={}&result_overflow_mode=throw"
      "&max_query_size=1048576",
      url_.path, seconds, 2 * max_bytes + kHeadBytes);
}

ksym::Result<std::string> ClickHouse::Ask(std::string_view select,
                                          const AskBounds& bounds) const {
  const auto left =
      std::chrono::ceil<milliseconds>(bounds.deadline - Clock::now());
  if (left.count() <= 0) {
    return Fail(ErrorCode::kLimit, "it takes too long: ask for less");
  }
  auto connection = PushConnection::Make(
      url_, {.login = login_,
             .connect_within = std::min(left, kConnectWithin),
             .answer_within = left,
             .max_answer_bytes = bounds.max_bytes +
                                 bounds.max_bytes / kFramingShare + kHeadBytes,
             .is_over = bounds.is_over});
  if (!connection) return Fail(std::move(connection.error()));
  PushConnection::Message message = {.path = PathOf(left, bounds.max_bytes),
                                     .content_type = "text/plain",
                                     .body = std::string(select),
                                     .wants_answer = true};
  auto answer = connection->Post(std::move(message));
  const bool is_late = Clock::now() >= bounds.deadline;
  if (!answer) {
    if (is_late) {
      return Fail(ErrorCode::kLimit,
                  "the database takes too long: ask for less");
    }
    return Fail(ErrorCode::kIo, "the database: " + answer.error().message());
  }
  if (answer->status != 200) return Fail(ErrorOf(*answer));
  if (answer->body.size() > bounds.max_bytes) {
    return Fail(ErrorCode::kLimit,
                fmt::format("the database's answer has more than {} MiB: ask "
                            "for less",
                            bounds.max_bytes >> 20));
  }
  if (!answer->is_whole) {
    return Fail(is_late ? ErrorCode::kLimit : ErrorCode::kIo,
                is_late ? "the database takes too long: ask for less"
                        : "the database's answer was cut off");
  }
  return std::move(answer->body);
}

}  // namespace profd::fleet
