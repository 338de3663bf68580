// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/base/now_ns.h"
#include "daemon/history/layout.h"
#include "daemon/history/tables.h"
#include "ksym/base/result.h"

namespace profd::history {

// The longest that a part of a summary is.
inline constexpr uint64_t kSummaryPartNs = 10 * kNsPerSecond;

// The samples of a file by cgroup and kind alone: without stacks, processes and
// commands, and with parts of up to kSummaryPartNs that are several of the
// file's, to a millisecond. So it says what a time line of coarse steps needs,
// in some hundredths of the file. Sums of samples, holes, runs and settings are
// those of the file. Nothing where it would not be small beside the file. The
// tables were checked. O(parts and rows).
std::optional<Tables> SummaryOf(const Tables& tables);

// EncodeSegment() with the summary and the flames, where there are some. The
// tables were checked.
ksym::Result<std::string> EncodeSummarized(Tables& tables, Sequences sequences);

}  // namespace profd::history
