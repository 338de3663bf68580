// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "ksym/base/heap_bytes.h"
#include "ksym/base/result.h"
#include "ksym/kernel/map_records.h"

namespace ksym {

// The bytes of a compact map (map_format.h) of arranged records, which are
// freed on the way. kLimit when something does not fit its field.
Result<HeapBytes> EncodeMap(MapRecords records, size_t symbol_count);

}  // namespace ksym
