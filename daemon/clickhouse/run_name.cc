// SPDX-License-Identifier: Apache-2.0
#include "daemon/clickhouse/run_name.h"

#include <fmt/format.h>

#include <random>

#include "daemon/base/now_ns.h"

namespace profd::clickhouse {

const std::string& RunName::Next(uint64_t start_unix_ns) {
  const uint64_t second = start_unix_ns / kNsPerSecond;
  if (name_.empty() || second <= last_second_) {
    std::random_device random;
    name_ = fmt::format("{:08x}{:08x}", random(), random());
  }
  last_second_ = second;
  return name_;
}

}  // namespace profd::clickhouse
