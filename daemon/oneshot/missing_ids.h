// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/capture/bpf_object.h"
#include "ksym/base/result.h"

namespace profd {

// The processes or threads that were chosen and are not there. kNotFound: none
// is, so that there would be an empty profile after a long wait.
ksym::Result<std::vector<uint32_t>> MissingIds(const BpfConfig& bpf);

// What to warn of: "there is no 12 nor 2 others"; empty: nothing is missing.
std::string MissingText(const std::vector<uint32_t>& missing);

}  // namespace profd
