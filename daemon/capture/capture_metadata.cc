// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/capture_metadata.h"

#include <sys/utsname.h>

#include <chrono>
#include <cstdint>

namespace profd {

CaptureMetadata DescribeHost() {
  CaptureMetadata metadata;
  metadata.version = KSYM_VERSION;
  utsname host = {};
  if (::uname(&host) == 0) {
    metadata.hostname = host.nodename;
    metadata.kernel_release = host.release;
    metadata.architecture = host.machine;
  }
  return metadata;
}

UnwindTableStatistics DescribeTables(const UnwindStatistics& now) {
  const auto count = [](std::chrono::nanoseconds time) {
    return static_cast<uint64_t>(time.count());
  };
  return {.processes = now.processes,
          .files = now.files,
          .bytes = now.rows_bytes,
          .building_ns = static_cast<uint64_t>(now.milliseconds * 1e6),
          .median_delay_ns = count(now.median_delay),
          .longest_delay_ns = count(now.longest_delay),
          .stacks_copied = now.copies};
}

}  // namespace profd
