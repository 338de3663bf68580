// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>
#include <optional>

namespace profd {

// Adds the subcommand with its options, for shell completion; it must not
// parse anything.
void AddUiCommandTo(CLI::App& app);

// `ksym-profile ui`: the page of the service's history in a browser, until
// Ctrl-C. Nothing if the arguments do not begin with that word; else it is done
// and this is the exit status.
std::optional<int> RunUiCommand(int argc, const char* const* argv);

}  // namespace profd
