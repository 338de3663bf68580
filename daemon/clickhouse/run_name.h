// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace profd::clickhouse {

// Says of which run of a service an interval is, so that the second in which it
// began and its run are its alone: host names may be those of several machines,
// and clocks go back. Not thread-safe.
class RunName {
 public:
  // The run of the next interval, which began then: 16 hexadecimal digits that
  // stay the same while each begins in a later second than the one before.
  const std::string& Next(uint64_t start_unix_ns);

 private:
  std::string name_;
  uint64_t last_second_ = 0;
};

}  // namespace profd::clickhouse
