// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/http_parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "ksym/base/text.h"

namespace profd {
namespace {

// False: the text is no such number.
bool Read(std::string_view text, NumberParameter& parameter) {
  const size_t point = text.find('.');
  if (parameter.may_have_thousandths && point != std::string_view::npos) {
    parameter.thousandths = ksym::ParseThousandths(text.substr(point + 1));
    if (!parameter.thousandths) return false;
    text = text.substr(0, point);
  }
  parameter.value = ksym::ParseUnsigned(text, 10);
  return parameter.value && *parameter.value <= parameter.most;
}

}  // namespace

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
    if (!Read(text, *parameter)) {
      return fmt::format(
          "{} must be a {} up to {}{}", name,
          parameter->may_have_thousandths ? "number" : "whole number",
          parameter->most,
          parameter->may_have_thousandths
              ? ", with three digits behind a point at the most"
              : "");
    }
  }
  return std::nullopt;
}

}  // namespace profd
