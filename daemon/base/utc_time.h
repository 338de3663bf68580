// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace profd {

// A moment as "2026-11-24 02:10:00", without the zone, which is UTC.
std::string UtcTimeText(uint64_t unix_ns);

}  // namespace profd
