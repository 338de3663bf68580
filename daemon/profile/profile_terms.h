#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "daemon/profile/profile.h"

namespace profd {

// In reports: "whole", "truncated".
std::string_view Name(StackState state);

// The state of that name.
std::optional<StackState> StackStateNamed(std::string_view name);

// Of CPU time, that one sample stands for; of events that do not count time it
// is not known.
std::optional<uint64_t> NanosecondsPerSample(const CaptureMetadata& metadata);

}  // namespace profd
