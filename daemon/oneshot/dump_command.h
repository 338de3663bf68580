// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>
#include <optional>

namespace profd {

// Adds the subcommand with its options, for shell completion; it must not
// parse anything.
void AddDumpCommandTo(CLI::App& app);

// `ksym-profile dump`: what all threads do now, and what they wait for. Nothing
// if the arguments do not begin with that word; else it is done and this is the
// exit status. Takes some tenths of a second; prints to stdout and stderr.
std::optional<int> RunDumpCommand(int argc, const char* const* argv);

}  // namespace profd
