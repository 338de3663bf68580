// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace profd {

// The indices of the texts in the order of their bytes, those of equal texts in
// any order. Compares 8 bytes at once and no byte twice that many texts share:
// some 100 ns per text where comparing whole ones takes a microsecond. Fewer
// than 2^32 texts; memory: 20 bytes each.
std::vector<uint32_t> OrderOfTexts(std::span<const std::string_view> texts);

}  // namespace profd
