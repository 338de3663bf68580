// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ksym/base/result.h"
#include "ksym/kernel/map_sections.h"

namespace ksym {

// Checks what a compact map with entries is looked up by, but for the bit
// streams and tokens: what leads to a block's bits, from a segment to its
// blocks, from a run to its module and from a module to its name is in range
// and in order after this. kCorrupt otherwise. O(blocks + runs + modules).
Status CheckMapIndexes(const MapSections& map);

}  // namespace ksym
