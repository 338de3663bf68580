// SPDX-License-Identifier: Apache-2.0
#include "daemon/track/process_state.h"

#include <dirent.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

// Fields of /proc/PID/stat as proc_pid_stat(5) numbers them, from 1.
constexpr size_t kStateField = 3;
constexpr size_t kUserTimeField = 14;
constexpr size_t kSystemTimeField = 15;
constexpr size_t kStartField = 22;
using StatFields = std::array<std::string, kStartField + 1>;

// The command in field 2 may contain anything, so fields are counted from its
// closing parenthesis.
std::optional<StatFields> ReadStat(uint32_t pid) {
  const auto stat = ksym::ReadFile(fmt::format("/proc/{}/stat", pid), 1 << 16);
  if (!stat) return std::nullopt;
  const size_t close = stat->rfind(')');
  if (close == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(*stat).substr(close + 1);
  ksym::TakeField(rest, ' ');
  StatFields fields;
  for (size_t i = kStateField; i < fields.size(); ++i) {
    fields[i] = ksym::TakeField(rest, ' ');
  }
  return fields;
}

// Calls `visit` with each entry of the directory that is a number.
template <typename Visit>
void ForEachNumber(const std::string& directory, const Visit& visit) {
  DIR* open = ::opendir(directory.c_str());
  if (open == nullptr) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> closer(open, &::closedir);
  while (const dirent* entry = ::readdir(open)) {
    const auto number = ksym::ParseUnsigned<uint32_t>(entry->d_name, 10);
    if (number) visit(*number);
  }
}

double NumberOf(const std::string& field) {
  return static_cast<double>(
      ksym::ParseUnsigned<uint64_t>(field, 10).value_or(0));
}

// How much CPU time it used in the mean of its life; times are in clock ticks.
double CpusOf(const StatFields& stat) {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double lived =
      static_cast<double>(now.tv_sec) * ticks - NumberOf(stat[kStartField]);
  const double used =
      NumberOf(stat[kUserTimeField]) + NumberOf(stat[kSystemTimeField]);
  return used / std::max(lived, ticks);
}

}  // namespace

std::vector<uint32_t> ReadProcesses() {
  std::vector<uint32_t> pids;
  ForEachNumber("/proc", [&](uint32_t pid) { pids.push_back(pid); });
  return pids;
}

double ReadCpusOf(uint32_t pid) {
  const auto stat = ReadStat(pid);
  return stat ? CpusOf(*stat) : 0;
}

}  // namespace profd
