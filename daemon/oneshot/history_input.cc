// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/history_input.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/history/queries.h"
#include "daemon/oneshot/history_arguments.h"
#include "daemon/oneshot/time_text.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;

constexpr std::string_view kUntil = "..";
constexpr size_t kMaxInputProfileBytes = size_t{1} << 30;

bool IsHistory(const std::string& directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) return false;
  const auto files = history::ListFiles(directory);
  return files && !files->empty();
}

Result<history::Selection> SelectionOf(const HistoryInput& input) {
  history::Selection selection;
  if (input.from.empty()) return selection;
  const uint64_t now = NowNs(CLOCK_REALTIME);
  const auto from = ParseMoment(input.from, now, std::nullopt);
  if (!from) return Fail(from.error());
  const auto to = ParseMoment(input.to.empty() ? "now" : input.to, now, *from);
  if (!to) return Fail(to.error());
  if (*to <= *from) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} is not before {}", input.from, input.to));
  }
  selection.from_unix_ns = *from;
  selection.until_unix_ns = *to;
  selection.by_slice = HasThousandths(input.from) || HasThousandths(input.to);
  return selection;
}

}  // namespace

std::optional<HistoryInput> ParseHistoryInput(const std::string& path) {
  std::error_code error;
  // A path that is there is meant as it is, also with an @ in it.
  if (std::filesystem::exists(path, error)) {
    if (!IsHistory(path)) return std::nullopt;
    return HistoryInput{.directory = path, .from = {}, .to = {}};
  }
  const size_t at = path.rfind('@');
  const size_t until = path.rfind(kUntil);
  if (at == std::string::npos || until == std::string::npos || until <= at) {
    return std::nullopt;
  }
  return HistoryInput{
      .directory = at == 0 ? std::string(kDefaultHistory) : path.substr(0, at),
      .from = path.substr(at + 1, until - at - 1),
      .to = path.substr(until + kUntil.size())};
}

Result<Profile> LoadHistoryInput(const HistoryInput& input) {
  const auto selection = SelectionOf(input);
  if (!selection) return Fail(selection.error());
  auto answer = history::ReadRange(input.directory, *selection,
                                   {.max_bytes = kMaxInputProfileBytes});
  if (!answer) return Fail(std::move(answer.error()));
  if (answer->coverage.parts == 0) {
    std::string why = "nothing is known of that time";
    if (selection->by_slice) why += history::kNoSlicesKnown;
    for (const std::string& warning : answer->read.warnings) {
      why += "; " + warning;
    }
    return Fail(ErrorCode::kNotFound, std::move(why));
  }
  return std::move(answer->profile);
}

}  // namespace profd
