// SPDX-License-Identifier: Apache-2.0
// Completion scripts for shells, made of a program's table of options, so that
// they have what --help has.
#ifndef KSYM_CLI_COMPLETION_H_
#define KSYM_CLI_COMPLETION_H_

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace ksym {

enum class Shell { kBash, kZsh, kFish };

/** "bash", "zsh" or "fish"; nothing for any other text. */
std::optional<Shell> ParseShell(std::string_view name);

/**
 * A script that completes the options of `app` and their values in `shell`.
 *
 * An option's type name says what its value is: `a|b|c` one of these words,
 * FILE or PATH a file, DIR a directory, PID a process; others are not
 * completed. Options without a group are left out, as in --help. Words that are
 * no options are files, and behind "--" a command and its own arguments.
 * `commands`, if not null, has subcommands whose names the first word can be;
 * behind one are its options and files.
 */
std::string CompletionScript(const CLI::App& app, Shell shell,
                             const CLI::App* commands = nullptr);

/**
 * Adds --completion SHELL. When it is parsed, CLI::CallForVersion is thrown
 * whose text is the script, so it takes the way of --version; another SHELL is
 * a CLI::ValidationError. Both apps must outlive the parsing.
 */
void AddCompletionOption(CLI::App& app, const CLI::App* commands = nullptr);

}  // namespace ksym

#endif  // KSYM_CLI_COMPLETION_H_
