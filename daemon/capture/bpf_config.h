// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "daemon/capture/capture.h"
#include "ksym/base/result.h"

namespace profd {

// "auto", "dwarf", "fp" or "none"; else nothing.
std::optional<Unwind> ParseUnwind(std::string_view name);

// Decides what the options leave open, by what this kernel can: the store, the
// walk of user stacks, how waits are seen, depths and sizes. Says so in the
// metadata, with a warning where it is less than what was asked for.
// kUnsupported: waits, or their wakers, cannot be seen.
ksym::Status CompleteConfig(CaptureOptions& options, size_t cpus,
                            CaptureMetadata& metadata);

}  // namespace profd
