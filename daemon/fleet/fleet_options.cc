// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/fleet_options.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "ksym/cli/completion.h"

namespace profd::fleet {
namespace {

constexpr const char* kFooter =
    "Prints the page's address, and answers until SIGINT or SIGTERM.\n"
    "docs/fleet.md says how the samples come into the database.\n"
    "Exit status: 0 ended by a signal, 1 failure, 2 wrong usage.\n";

}  // namespace

ParsedFleetCommandLine ParseFleetCommandLine(int argc,
                                             const char* const* argv) {
  CLI::App app("Shows the profiles of many hosts that are in ClickHouse.",
               "ksym-fleet");
  FleetOptions options;
  app.add_option("--clickhouse", options.clickhouse,
                 "The database: http://HOST:PORT/DATABASE, or https://...")
      ->type_name("URL")
      ->required();
  app.add_option("--login-file", options.login_file,
                 "File whose first line is the database's USER:PASSWORD")
      ->type_name("FILE");
  app.add_option("--listen", options.listen, "Where the page is")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  app.add_option("--token-file", options.token_file,
                 "File whose first line is the token that the page needs; "
                 "without it a new one is made")
      ->type_name("FILE");
  app.set_version_flag("--version", "ksym-fleet " KSYM_VERSION);
  app.footer(kFooter);
  ksym::AddCompletionOption(app);
  ParsedFleetCommandLine parsed;
  if (!ksym::ParseCommandLine(app, argc, argv, parsed.end)) return parsed;
  parsed.options = std::move(options);
  return parsed;
}

}  // namespace profd::fleet
