// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ksym/base/result.h"

namespace profd {

// The capabilities that are in effect, a bit for each number of
// linux/capability.h. One system call.
ksym::Result<uint64_t> EffectiveCapabilities();

// Gives all of this thread's capabilities up, for those that it begins later
// and for good. Where there are none it does nothing.
ksym::Status DropCapabilities();

inline bool HasCapability(uint64_t capabilities, unsigned capability) {
  return (capabilities >> capability & 1) != 0;
}

}  // namespace profd
