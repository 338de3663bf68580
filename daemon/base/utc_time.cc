// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/utc_time.h"

#include <ctime>

#include "daemon/base/now_ns.h"

namespace profd {

std::string UtcTimeText(uint64_t unix_ns) {
  const auto seconds = static_cast<time_t>(unix_ns / kNsPerSecond);
  tm parts = {};
  char text[64] = "?";
  if (::gmtime_r(&seconds, &parts) != nullptr) {
    (void)std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  }
  return text;
}

}  // namespace profd
