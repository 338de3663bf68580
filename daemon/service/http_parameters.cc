// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/http_parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "ksym/base/text.h"

namespace profd {

std::optional<std::string> ReadParameters(
    const std::multimap<std::string, std::string>& given,
    std::span<NumberParameter> numbers, std::span<TextParameter> texts) {
  for (const auto& [name, text] : given) {
    if (given.count(name) > 1) return fmt::format("{} is there twice", name);
    const auto text_parameter =
        std::ranges::find(texts, name, &TextParameter::name);
    if (text_parameter != texts.end()) {
      text_parameter->value = text;
      continue;
    }
    const auto parameter =
        std::ranges::find(numbers, name, &NumberParameter::name);
    if (parameter == numbers.end()) {
      return fmt::format("unknown parameter {}", name);
    }
    const auto value = ksym::ParseUnsigned(text, 10);
    if (!value || *value > parameter->most) {
      return fmt::format("{} must be a whole number up to {}", name,
                         parameter->most);
    }
    parameter->value = value;
  }
  return std::nullopt;
}

}  // namespace profd
