// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/pprof_kind.h"

#include "ksym/base/text.h"

namespace profd {
namespace {

constexpr std::string_view kOf = " of ";

// The text behind the beginning; nothing if the text does not begin so.
std::optional<std::string_view> After(std::string_view beginning,
                                      std::string_view text) {
  if (!text.starts_with(beginning)) return std::nullopt;
  return text.substr(beginning.size());
}

}  // namespace

std::string PprofKindComment(const SampleKind& kind) {
  std::string text = "kind " + kind.name + ": ";
  if (kind.has_values) {
    text += "values";
  } else if (kind.frequency_hz != 0) {
    text += std::to_string(kind.frequency_hz) + " Hz";
  } else {
    text += "every " + std::to_string(kind.count_period);
  }
  return (text += kOf) += kind.event;
}

std::optional<SampleKind> ParsePprofKindComment(std::string_view comment,
                                                std::string_view name) {
  auto rest = After("kind ", comment);
  if (rest) rest = After(name, *rest);
  if (rest) rest = After(": ", *rest);
  if (!rest) return std::nullopt;
  const size_t end = rest->find(kOf);
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view rate = rest->substr(0, end);
  SampleKind kind;
  kind.name = name;
  kind.event = rest->substr(end + kOf.size());
  if (rate == "values") {
    kind.has_values = true;
    return kind;
  }
  if (const auto period = After("every ", rate)) {
    kind.count_period = ksym::ParseUnsigned(*period, 10).value_or(0);
  } else {
    const std::string_view number = ksym::TakeField(rate, ' ');
    if (rate != "Hz") return std::nullopt;
    kind.frequency_hz = ksym::ParseUnsigned(number, 10).value_or(0);
  }
  if (kind.count_period == 0 && kind.frequency_hz == 0) return std::nullopt;
  return kind;
}

}  // namespace profd
