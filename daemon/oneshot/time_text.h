// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ksym/base/result.h"

namespace profd {

// A moment as users write it, in nanoseconds since 1970; days and hours are of
// the local time zone:
//
//   now            the present
//   -15m           so long ago: s, m, h or d
//   02:10          the last such time of day, or behind `after` the next one;
//                  also with seconds
//   2026-11-24     when that day began
//   2026-11-24 02:10, 2026-11-24T02:10:30
//   @1795572780    seconds since 1970; also without the @
//
// Seconds may have a point and up to three digits behind it.
// kInvalid, with these, for anything else.
ksym::Result<uint64_t> ParseMoment(std::string_view text, uint64_t now_unix_ns,
                                   std::optional<uint64_t> after_unix_ns);

// Whether it has such digits.
bool HasThousandths(std::string_view moment);

// A moment as "2026-11-24 02:10:00", in the local time zone.
std::string LocalTimeText(uint64_t unix_ns);
// The same with thousandths.
std::string ExactLocalTimeText(uint64_t unix_ns);

}  // namespace profd
