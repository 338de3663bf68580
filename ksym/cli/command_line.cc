// SPDX-License-Identifier: Apache-2.0
#include "ksym/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <sstream>

namespace ksym {
namespace {

constexpr int kUsageError = 2;

}  // namespace

bool ParseCommandLine(CLI::App& app, int argc, const char* const* argv,
                      CommandLineEnd& end) {
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::ParseError& error) {
    // --help and --version arrive as errors too.
    if (error.get_exit_code() == 0) {
      std::ostringstream out;
      app.exit(error, out, out);
      end.output_text = out.str();
      return false;
    }
    end.exit_status = kUsageError;
    end.error_text = std::string(error.what()) + " (--help shows all)";
    return false;
  }
}

bool PrintOutput(const std::string& text) {
  return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
}

}  // namespace ksym
