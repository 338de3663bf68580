// SPDX-License-Identifier: Apache-2.0
#include "daemon/labels/environment_reader.h"

#include <string>
#include <utility>

#include "daemon/base/process_start.h"
#include "ksym/base/file.h"

namespace profd {

ProcessEnvironment ReadEnvironment(const ksym::ProcessId& process,
                                   const EnvironmentChoice& choice) {
  const auto block =
      ksym::ReadFile("/proc/" + std::to_string(process.pid) + "/environ",
                     kMaxEnvironmentBytes);
  // After the reading: the pid was this process's until then.
  if (!IsSameProcess(process.pid, process.start_ns)) {
    return {.result = EnvironmentResult::kGone};
  }
  if (!block) {
    const bool is_long = block.error().code() == ksym::ErrorCode::kLimit;
    return {.result = is_long ? EnvironmentResult::kTooLarge
                              : EnvironmentResult::kUnreadable};
  }
  EnvironmentLabels found = ParseEnvironment(*block, choice);
  return {.result = found.is_malformed ? EnvironmentResult::kMalformed
                                       : EnvironmentResult::kRead,
          .labels = std::move(found.labels),
          .refused = found.refused};
}

}  // namespace profd
