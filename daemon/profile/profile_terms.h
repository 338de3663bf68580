// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "daemon/profile/profile.h"
#include "daemon/profile/stack_end.h"

namespace profd {

// In reports: "whole", "truncated"; "broken" whatever the cause.
std::string_view Name(StackState state);

// The state of a stack that was taken: whether its walk got to the root, and if
// not why.
StackState StateOf(StackEnd end);

// Why the stack is broken; nothing if it is not, or that is not known.
std::optional<StackEnd> CauseOf(StackState state);

// The state of that name.
std::optional<StackState> StackStateNamed(std::string_view name);

// CPU time that one of the first kind's counts stands for, as KeepFirstKind()
// leaves them; none where that kind is not CPU time.
std::optional<uint64_t> NanosecondsPerSample(const CaptureMetadata& metadata);

}  // namespace profd
