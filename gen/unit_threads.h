// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "ksym/gsym_convert.h"

namespace gen {

// Reads units on `threads` threads and adds them in order on the caller's. At
// most two units per thread are read ahead, which bounds the memory. With one
// thread none is started. `progress` is called on the caller's thread with
// the units that are done and all of them.
ksym::UnitRunner RunUnitsOnThreads(
    size_t threads, std::function<void(size_t done, size_t all)> progress);

}  // namespace gen
