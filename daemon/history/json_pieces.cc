// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/json_pieces.h"

#include <fmt/format.h>

#include "daemon/base/now_ns.h"
#include "daemon/output/safe_name.h"

namespace profd::history {

std::string SecondsText(uint64_t ns) {
  constexpr uint64_t kNsOfMillisecond = 1'000'000;
  return fmt::format("{}.{:03}", ns / kNsPerSecond,
                     ns / kNsOfMillisecond % 1000);
}

void AppendText(std::string_view text, std::string& out) {
  out += '"';
  AppendJsonText(text, out);
  out += '"';
}

}  // namespace profd::history
