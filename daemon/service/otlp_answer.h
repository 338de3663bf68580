// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace profd {

// The answer of a receiver of OpenTelemetry's profiles to a request that it
// took.
struct OtlpAnswer {
  uint64_t rejected_profiles = 0;  // of the request, that it did not take
  std::string message = {};        // why, printable; 200 bytes at the most
};

// An ExportProfilesServiceResponse. One that is none is taken for one that says
// nothing, as the status has said that all was taken. O(bytes).
OtlpAnswer ReadOtlpAnswer(std::string_view bytes);

}  // namespace profd
