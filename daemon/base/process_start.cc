// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/process_start.h"

#include <unistd.h>

#include <string>
#include <string_view>

#include "daemon/base/now_ns.h"
#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

constexpr size_t kMaxStatBytes = size_t{64} << 10;

// The process's start in clock ticks since boot, field 22 of its stat; empty
// when it is gone. The command, in field 2, may have anything in it.
std::string StartTicks(uint32_t pid) {
  constexpr int kFieldsBetween = 19;
  const auto text =
      ksym::ReadFile("/proc/" + std::to_string(pid) + "/stat", kMaxStatBytes);
  if (!text) return {};
  std::string_view rest = *text;
  const size_t command_end = rest.rfind(") ");
  if (command_end == std::string_view::npos) return {};
  rest.remove_prefix(command_end + 2);
  for (int i = 0; i < kFieldsBetween; ++i) ksym::TakeField(rest, ' ');
  return std::string(ksym::TakeField(rest, ' '));
}

}  // namespace

bool IsSameProcess(uint32_t pid, uint64_t start_ns) {
  const uint64_t ns_per_tick =
      kNsPerSecond / static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  return StartTicks(pid) == std::to_string(start_ns / ns_per_tick);
}

}  // namespace profd
