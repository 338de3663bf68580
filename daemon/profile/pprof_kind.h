// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/profile/sample_kind.h"

namespace profd {

// pprof's types have a name and a unit only. A comment tells the rest of a
// kind, where there are several:
//   kind page-faults: every 10 of page-faults
//   kind cpu: 99 Hz of cpu-clock
//   kind blocked: values of sched:sched_switch
std::string PprofKindComment(const SampleKind& kind);

// The kind of that name, without its unit; nothing: the comment is of something
// else, or of samples that stand for nothing.
std::optional<SampleKind> ParsePprofKindComment(std::string_view comment,
                                                std::string_view name);

}  // namespace profd
