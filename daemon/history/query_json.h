// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "daemon/history/queries.h"

namespace profd::history {

// Answers as JSON, for programs and for the service's page; docs/formats.md has
// the members. Times are in seconds since 1970 with three decimals, values in
// the unit that the answer names. Names are printable.

std::string RenderListingJson(const ListingAnswer& answer);
// At most so many functions; 0: all.
std::string RenderFunctionsJson(const FunctionAnswer& answer, size_t top);
std::string RenderTimelineJson(const TimelineAnswer& answer);

}  // namespace profd::history
