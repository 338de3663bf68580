// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

namespace profd {

// Adds "history" to the commands, for the help and for completion.
void AddHistoryCommandTo(CLI::App& app);

// Does what "ksym-profile history ..." asks for: shows a time of what the
// service kept, or compares two. Nothing: it is another command line.
std::optional<int> RunHistoryCommand(int argc, const char* const* argv);

}  // namespace profd
