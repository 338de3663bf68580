// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <optional>

namespace profd {

// An app whose subcommands are these words with their options, for shell
// completion; it must not parse anything.
std::unique_ptr<CLI::App> FileCommandTable();

// `ksym-profile report FILE...`, `diff BEFORE AFTER` and `convert IN -o OUT`:
// what is done with profiles that are there already, of this program or
// another one. Nothing if the arguments begin with none of these words; else
// it is done and this is the exit status. Needs no privilege; prints to stdout
// and stderr.
std::optional<int> RunFileCommand(int argc, const char* const* argv);

}  // namespace profd
