// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/capture/bpf_object.h"
#include "ksym/base/result.h"
#include "profile.skel.h"

namespace profd {

// Before the object is loaded: which programs and maps it has, how large they
// are, and the knobs.
ksym::Status ConfigureBpf(const BpfConfig& config, profile_bpf& skeleton);
// After it was loaded: what is sampled.
ksym::Status FillFilters(const BpfConfig& config, const profile_bpf& skeleton);

}  // namespace profd
