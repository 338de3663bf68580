// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/ui_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "daemon/oneshot/common_options.h"
#include "daemon/oneshot/messages.h"
#include "ksym/base/result.h"

namespace profd {
namespace {

constexpr std::string_view kUiExamples = R"(Examples:
  ksym-profile ui                  opens the page in the browser
  ksym-profile ui --no-browser     prints its address only
  ssh -L 4040:127.0.0.1:4040 HOST ksym-profile ui --port 4040 --no-browser
)";

CLI::App& AddUi(CLI::App& app, UiArguments& arguments) {
  CLI::App& ui = *app.add_subcommand(
      "ui",
      "Opens the page of the history that ksym-profiled keeps, until Ctrl-C");
  ui.add_option(
        "--socket", arguments.socket,
        fmt::format("The service's Unix socket (default {})", arguments.socket))
      ->type_name("FILE");
  ui.add_option("--port", arguments.port,
                "The port at this machine's loopback (default: a free one)")
      ->type_name("N")
      ->check(CLI::Range(0, 65'535));
  ui.add_flag("--no-browser", arguments.no_browser,
              "Print the page's address only");
  ui.footer(std::string(kUiExamples));
  return ui;
}

// Where the program that shows the page is, from the directory of this one:
// beside it in a build, else where it is installed.
constexpr std::array<std::string_view, 2> kUiProgramPlaces = {
    "ksym-profile-ui", "../lib/ksym/ksym-profile-ui"};

// Becomes that program. Returns only if that failed.
ksym::Error BecomeUiProgram(const char* const* argv) {
  std::error_code failed;
  const std::filesystem::path own =
      std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return ksym::Fail(ksym::ErrorCode::kIo, "/proc/self/exe").error();
  for (const std::string_view place : kUiProgramPlaces) {
    // Capabilities of this file do not go on to a program without any.
    ::execv((own.parent_path() / place).c_str(),
            const_cast<char* const*>(argv));
    if (errno != ENOENT) break;
  }
  if (errno == ENOENT) {
    return ksym::Fail(ksym::ErrorCode::kNotFound,
                      "ksym-profile-ui, which opens the page, is not installed "
                      "beside ksym-profile or in ../lib/ksym")
        .error();
  }
  return ksym::FailErrno(errno, "ksym-profile-ui").error();
}

}  // namespace

void AddUiCommandTo(CLI::App& app) {
  UiArguments not_parsed;
  AddUi(app, not_parsed);
}

std::expected<UiArguments, int> ParseUiCommand(int argc,
                                               const char* const* argv) {
  UiArguments arguments;
  CLI::App app("Opens the page of a history.", "ksym-profile");
  const CLI::App& ui = AddUi(app, arguments);
  const auto status = ParseCommand(app, {argv, static_cast<size_t>(argc)},
                                   [&] { RefuseEmpty(ui, {"--socket"}); });
  if (status) return std::unexpected(*status);
  return arguments;
}

std::optional<int> RunUiCommand(int argc, const char* const* argv) {
  if (argc < 2 || std::string_view(argv[1]) != "ui") return std::nullopt;
  // What is wrong with the arguments is said, and help given, without it.
  if (const auto parsed = ParseUiCommand(argc, argv); !parsed) {
    return parsed.error();
  }
  return ReportFailure(BecomeUiProgram(argv));
}

}  // namespace profd
