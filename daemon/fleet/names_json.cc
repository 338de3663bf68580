// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/names_json.h"

#include <fmt/format.h>

#include <iterator>

#include "daemon/history/json_pieces.h"

namespace profd::fleet {

using history::AppendText;

std::string RenderNamesJson(const NamesAnswer& answer) {
  std::string out = "{\"kind\":";
  AppendText(answer.kind, out);
  out += ",\"unit\":";
  AppendText(answer.unit, out);
  out += ",\"known\":" + history::SecondsText(answer.known_ns);
  out += ",\n\"names\":";
  history::AppendList(
      answer.names,
      [&](const NameSum& sum) {
        out += "\n{\"name\":";
        AppendText(sum.name, out);
        fmt::format_to(std::back_inserter(out), ",\"samples\":{},\"sum\":{}}}",
                       sum.count, sum.value);
      },
      out);
  return out += "}\n";
}

}  // namespace profd::fleet
