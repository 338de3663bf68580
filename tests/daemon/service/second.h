// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace profd {

// In nanoseconds, as the service counts.
inline constexpr uint64_t kSecond = 1'000'000'000;

}  // namespace profd
