// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace profd {

// A parameter that a request may have, with the value that it has.
struct NumberParameter {
  std::string_view name;
  uint64_t most;
  bool may_have_thousandths = false;  // "5.24"
  std::optional<uint64_t> value = {};
  std::optional<uint32_t> thousandths = {};  // besides, where there is a point
};
struct TextParameter {
  std::string_view name;
  std::string value = {};
};

// Fills the values in; returns what is wrong, or nothing. Each may be there
// once.
std::optional<std::string> ReadParameters(
    const std::multimap<std::string, std::string>& given,
    std::span<NumberParameter> numbers, std::span<TextParameter> texts);

}  // namespace profd
