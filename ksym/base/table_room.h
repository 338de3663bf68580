// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace ksym {

// Asked before a table of so many bytes, about, is made of a file, and may wait
// until others are done: each table is bounded, but several threads make some.
// What it returns is kept until the table is as small as it will be. Empty:
// nothing waits.
using TableRoom = std::function<std::shared_ptr<void>(uint64_t bytes)>;

}  // namespace ksym
