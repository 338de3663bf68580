// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "daemon/capture/bpf_object.h"
#include "daemon/capture/capture.h"
#include "daemon/capture/sampler.h"
#include "daemon/perf/perf_event.h"
#include "ksym/base/result.h"

namespace profd {

// The samplers that the options ask for, in the order of their kinds: the
// CPU's, which needs the event, that of waits, the dump, and those of
// `more_samplers`. The object was loaded for them, and outlives them. Those of
// waits are attached, but nothing counts before Samplers::Enable().
ksym::Result<Samplers> MakeSamplers(const CaptureOptions& options,
                                    const std::optional<EventSpec>& event,
                                    BpfObject& object);

}  // namespace profd
