// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ksym/base/unique_fd.h"

namespace profd {

// Puts maps into an array of maps, beside each other from `first` on. Returns
// how many of them are there now, from the first of them on; errno says why the
// next one is not. Sleeps for an RCU grace period, once for all of them where
// the kernel has batches for it, and else for each.
size_t AddInnerMaps(int outer, uint32_t first,
                    std::span<const ksym::UniqueFd> maps);

}  // namespace profd
