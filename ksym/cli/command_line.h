// SPDX-License-Identifier: Apache-2.0
#ifndef KSYM_CLI_COMMAND_LINE_H_
#define KSYM_CLI_COMMAND_LINE_H_

#include <CLI/App.hpp>
#include <string>

namespace ksym {

/** What is printed instead of running, and the status to exit with. */
struct CommandLineEnd {
  int exit_status = 0;
  std::string output_text;  // for stdout: of --help, --version
  std::string error_text;   // for stderr: one line, without the program's name
};

/**
 * Fills in what the options of `app` name. False: the program ends, as `end`
 * says; with status 2 where the command line is wrong.
 */
bool ParseCommandLine(CLI::App& app, int argc, const char* const* argv,
                      CommandLineEnd& end);

/** Whether a text, which is data, could be written to stdout. */
bool PrintOutput(const std::string& text);

}  // namespace ksym

#endif  // KSYM_CLI_COMMAND_LINE_H_
