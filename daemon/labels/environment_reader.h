// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "daemon/labels/environment_text.h"
#include "daemon/profile/label_set.h"
#include "ksym/process/process_image.h"

namespace profd {

// What came of reading a process's environment.
enum class EnvironmentResult : uint8_t {
  kRead,
  kGone,  // the process ended first
  kTooLarge,
  kMalformed,   // OTEL_RESOURCE_ATTRIBUTES is no list; the name may be there
  kUnreadable,  // the system refused
  kNotInTime,   // a page of it does not come
  kNoRoom,      // too many processes at once
};
inline constexpr size_t kEnvironmentResults = 7;

inline constexpr size_t kMaxEnvironmentBytes = size_t{256} << 10;

struct ProcessEnvironment {
  EnvironmentResult result = EnvironmentResult::kGone;
  LabelSet labels = {};
  size_t refused = 0;  // attributes; see EnvironmentLabels
};

// Reads /proc/PID/environ, which needs CAP_SYS_PTRACE for others' processes. It
// is memory of the process, which decides what is there and when it comes: this
// may never return. Some 30 us.
ProcessEnvironment ReadEnvironment(const ksym::ProcessId& process,
                                   const EnvironmentChoice& choice);

}  // namespace profd
