// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "ksym/cli/command_line.h"

namespace profd::fleet {

struct FleetOptions {
  std::string clickhouse;  // a URL
  std::string login_file;  // empty: without a user
  std::string listen = "127.0.0.1:4041";
  std::string token_file;  // empty: a token is made
};

struct ParsedFleetCommandLine {
  std::optional<FleetOptions> options;
  ksym::CommandLineEnd end;  // where there are none
};

ParsedFleetCommandLine ParseFleetCommandLine(int argc, const char* const* argv);

}  // namespace profd::fleet
