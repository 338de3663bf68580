// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "daemon/oneshot/options.h"

namespace profd {

// Options that more than one command has. What they are added for is borrowed
// until the command line is parsed.

// A usage error; thrown by the functions that decide on options, and caught by
// those that parse a command line.
struct UsageError {
  std::string message;
};

// Parses the command line of a subcommand, and then calls `decide`, which may
// throw UsageError. Nothing: there is something to do; else all is said, the
// help or what is wrong, and this is the exit status.
std::optional<int> ParseCommand(CLI::App& app,
                                std::span<const char* const> command_line,
                                const std::function<void()>& decide);

// Throws UsageError where one of these options has an empty text.
void RefuseEmpty(const CLI::App& app,
                 std::initializer_list<const char*> options);

// -p and -L.
void AddIdOptions(CLI::App& app, std::string& pids, std::string& tids);
// Throws UsageError.
void DecideIds(std::string_view pids, std::string_view tids, BpfConfig& bpf);

// -o and --format of a command that writes a profile in any format;
// `of_stdout` names the one without them.
void AddTargetOptions(CLI::App& app, std::string& path, std::string& format,
                      std::string_view of_stdout);

// -q and -v.
void AddVerbosityOptions(CLI::App& app, ProfileOptions& options);
// Throws UsageError.
void DecideVerbosity(ProfileOptions& options);

}  // namespace profd
