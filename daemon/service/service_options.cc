// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/service_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/cli/completion.h"

namespace profd {
namespace {

constexpr size_t kMaxConfigBytes = size_t{1} << 20;
constexpr int kUsageError = 2;

constexpr const char* kFooter =
    "Flags win over the configuration file. docs/service.md describes both.\n"
    "SIGHUP reads the file again, SIGUSR1 writes the profile so far, SIGTERM\n"
    "and SIGINT write it and end.\n"
    "Exit status: 0 ended by a signal, 1 failure, 2 wrong usage or an invalid\n"
    "configuration.\n";

// What --help and shell completion say a key's value is.
std::string ValueName(const ConfigKey& key) {
  if (std::holds_alternative<ConfigKey::Number>(key.kind)) return "N";
  if (std::holds_alternative<ConfigKey::Flag>(key.kind)) return "true|false";
  if (std::holds_alternative<ConfigKey::Addresses>(key.kind) ||
      std::holds_alternative<ConfigKey::Words>(key.kind) ||
      std::holds_alternative<ConfigKey::Targets>(key.kind)) {
    return "LIST";
  }
  const auto* choice = std::get_if<ConfigKey::Choice>(&key.kind);
  return choice == nullptr ? "PATH"
                           : fmt::format("{}", fmt::join(choice->words(), "|"));
}

}  // namespace

ParsedServiceCommandLine ParseServiceCommandLine(int argc,
                                                 const char* const* argv) {
  CLI::App app("Profiles this machine all the time, a file per interval.",
               "ksym-profiled");
  ServiceOptions options;
  bool foreground = false;
  app.add_option("--config", options.config_path, "Configuration file")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_flag("--check-config", options.check_config,
               "Check the configuration and exit: 0 if it is valid");
  app.add_flag("--foreground", foreground,
               "Stay in the foreground; it always does");
  app.set_version_flag("--version", "ksym-profiled " KSYM_VERSION);
  app.footer(kFooter);
  for (const ConfigKey& key : ConfigKeys()) {
    app.add_option_function<std::string>(
           FlagOf(key),
           [&options, &key](const std::string& text) {
             options.flags.emplace_back(&key, text);
           },
           std::string(key.help))
        ->type_name(ValueName(key));
  }
  ksym::AddCompletionOption(app);
  ParsedServiceCommandLine parsed;
  if (!ksym::ParseCommandLine(app, argc, argv, parsed.end)) return parsed;
  ServiceConfig scratch;
  for (const auto& [key, text] : options.flags) {
    const auto set = SetFromText(*key, text, scratch);
    if (set) continue;
    parsed.end.exit_status = kUsageError;
    parsed.end.error_text = set.error().message();
    return parsed;
  }
  options.config_given = app.count("--config") > 0;
  parsed.options = std::move(options);
  return parsed;
}

ksym::Result<ServiceConfig> LoadConfig(const ServiceOptions& options) {
  ServiceConfig config;
  const auto fd = ksym::OpenForRead(options.config_path);
  const bool missing = !fd && fd.error().code() == ksym::ErrorCode::kNotFound;
  if (!fd && (!missing || options.config_given)) {
    return ksym::Fail(fd.error());
  }
  if (fd) {
    const auto text = ksym::ReadAll(fd->get(), kMaxConfigBytes);
    if (!text) {
      return ksym::Fail(
          ksym::Error(text.error()).WithContext(options.config_path));
    }
    auto parsed = ParseConfig(*text, options.config_path);
    if (!parsed) return parsed;
    config = std::move(*parsed);
  }
  for (const auto& [key, text] : options.flags) {
    auto set = SetFromText(*key, text, config);
    if (!set) return ksym::Fail(std::move(set.error()));
  }
  return config;
}

}  // namespace profd
