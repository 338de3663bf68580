// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "ksym/base/result.h"
#include "ksym/unwind/unwind_table.h"

namespace ksym {

// Raised when a builder makes other rows from the same file, or a reader would
// understand old ones differently.
inline constexpr uint32_t kUnwindTableVersion = 3;

// A table as bytes of a file (docs/formats.md). `key`, at most 64 bytes, says
// what it is the table of. first_problem is not kept.
std::string EncodeUnwindTable(const UnwindTable& table, std::string_view key);

// The table, if the bytes are one of this version and key, whole and
// unchanged, and each row is one that a builder makes; kCorrupt otherwise.
// They begin at an address that is a multiple of 8. O(rows).
Result<UnwindTable> DecodeUnwindTable(std::span<const std::byte> bytes,
                                      std::string_view key);

}  // namespace ksym
