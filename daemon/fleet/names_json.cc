// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/names_json.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "daemon/output/safe_name.h"

namespace profd::fleet {

std::string RenderNamesJson(const NamesAnswer& answer) {
  std::string out = "{\"kind\":\"";
  AppendJsonText(answer.kind, out);
  out += "\",\"unit\":\"";
  AppendJsonText(answer.unit, out);
  constexpr uint64_t kNsOfMillisecond = 1'000'000;
  fmt::format_to(std::back_inserter(out), "\",\"known\":{}.{:03},\n\"names\":[",
                 answer.known_ns / (1000 * kNsOfMillisecond),
                 answer.known_ns / kNsOfMillisecond % 1000);
  std::string_view separator = "\n";
  for (const NameSum& sum : answer.names) {
    out += separator;
    out += "{\"name\":\"";
    AppendJsonText(sum.name, out);
    fmt::format_to(std::back_inserter(out), "\",\"samples\":{},\"sum\":{}}}",
                   sum.count, sum.value);
    separator = ",\n";
  }
  return out += "]}\n";
}

}  // namespace profd::fleet
