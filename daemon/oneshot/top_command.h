// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>
#include <optional>

namespace profd {

// Adds the subcommand with its options, for shell completion; it must not
// parse anything.
void AddTopCommandTo(CLI::App& app);

// `ksym-profile top`: a live table of what threads do. Nothing if the arguments
// do not begin with that word; else it is done and this is the exit status.
std::optional<int> RunTopCommand(int argc, const char* const* argv);

}  // namespace profd
