// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>

namespace profd {

struct UiArguments {
  std::string socket = "/run/ksym-profiled/http.sock";  // the service's
  uint16_t port = 0;                                    // 0: a free one
  bool no_browser = false;
};

// Adds the subcommand with its options, for shell completion; it must not
// parse anything.
void AddUiCommandTo(CLI::App& app);

// Parses the arguments of `ksym-profile ui`. An exit status: there is nothing
// to do, and all is said: the help, or what is wrong.
std::expected<UiArguments, int> ParseUiCommand(int argc,
                                               const char* const* argv);

// `ksym-profile ui`: the page of the service's history in a browser, until
// Ctrl-C. The process becomes ksym-profile-ui for that, which has the libraries
// of HTTP, so that captures need not load them. Nothing if the arguments do not
// begin with that word; else an exit status of what did not come to that.
std::optional<int> RunUiCommand(int argc, const char* const* argv);

}  // namespace profd
