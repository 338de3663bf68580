// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/profile/accounting.h"
#include "daemon/profile/frame_kinds.h"
#include "ksym/symbolizer.h"

namespace profd::history {

// What files of a history say in words, so that a kind or a cause that comes
// or goes changes no number in them.

// Function::flags of frames of that kind.
uint32_t FlagsOf(const FrameKind& kind);
// The kind with that name and these flags; null: there is none. The module
// tells those of the kernel's code apart.
const FrameKind* FindKindOfFunction(std::string_view name, uint32_t flags,
                                    std::string_view module);

std::optional<ksym::Unresolved> FindReason(std::string_view name);

// Names of Accounting::taken and emitted.
inline constexpr std::string_view kTakenCounter = "taken";
inline constexpr std::string_view kEmittedCounter = "emitted";
// The numbers that are not 0, by name: "taken", "lost ring-full".
std::vector<std::pair<std::string, uint64_t>> CountersOf(
    const Accounting& accounting);
// Which of an accounting's numbers has that name; nothing: none has.
std::optional<size_t> FindCounter(std::string_view name);
// The numbers, as FindCounter() counts them.
std::vector<uint64_t*> CountersIn(Accounting& accounting);

}  // namespace profd::history
