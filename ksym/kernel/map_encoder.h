#pragma once

#include <cstddef>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/kernel/map_records.h"

namespace ksym {

// The bytes of a compact map (map_format.h) of arranged records, which are
// freed on the way. kLimit when something does not fit its field.
Result<std::vector<std::byte>> EncodeMap(MapRecords records,
                                         size_t symbol_count);

}  // namespace ksym
