// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace profd {

// How many mapped files the symbolizer may hold open: half of what this
// process may open by its limit, soft or hard. The events take some per CPU,
// perf maps 128, the rest is for what is open for a moment only.
enum class LimitOf { kSoft, kHard };
size_t MaxMappedFiles(LimitOf limit);

}  // namespace profd
