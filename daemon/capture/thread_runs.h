// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace profd {

// How often the thread was chosen to run, the low 32 bits, as the walk over all
// threads has it (profile_copy_record); it grows before the thread runs.
// Nothing: it is gone. Some 10 us.
std::optional<uint32_t> ReadThreadRuns(uint32_t tid);

}  // namespace profd
