// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/common_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "daemon/oneshot/messages.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

constexpr uint32_t kMaxPid = 1u << 22;  // PID_MAX_LIMIT of 64-bit kernels

// Ids in a list, "12,34", sorted and each once; none of an empty text.
std::vector<uint32_t> ParseIds(std::string_view option, std::string_view text) {
  std::vector<uint32_t> ids;
  if (text.empty()) return ids;
  std::string_view rest = text;
  while (!rest.empty()) {
    const bool dangling =
        rest.back() == ',' && rest.find(',') + 1 == rest.size();
    const std::string_view part = ksym::TakeField(rest, ',');
    const auto id = ksym::ParseUnsigned<uint32_t>(part, 10);
    if (!id || *id == 0 || *id > kMaxPid || dangling) {
      throw UsageError{fmt::format(
          "{}: '{}' is not a list of ids such as 12,34", option, text)};
    }
    ids.push_back(*id);
  }
  std::ranges::sort(ids);
  const auto repeated = std::ranges::unique(ids);
  ids.erase(repeated.begin(), repeated.end());
  return ids;
}

}  // namespace

std::optional<int> ParseCommand(CLI::App& app,
                                std::span<const char* const> command_line,
                                const std::function<void()>& decide) {
  try {
    app.parse(static_cast<int>(command_line.size()), command_line.data());
    decide();
  } catch (const CLI::CallForHelp&) {
    return PrintToStdout(app.help());
  } catch (const CLI::ParseError& error) {
    return ReportUsage(error.what());
  } catch (const UsageError& error) {
    return ReportUsage(error.message);
  }
  return std::nullopt;
}

void RefuseEmpty(const CLI::App& app,
                 std::initializer_list<const char*> options) {
  for (const char* name : options) {
    if (app.count(name) > 0 && app[name]->as<std::string>().empty()) {
      throw UsageError{fmt::format("{}: it is empty", name)};
    }
  }
}

void AddIdOptions(CLI::App& app, std::string& pids, std::string& tids) {
  app.add_option("-p,--pid", pids, "Only these processes")->type_name("LIST");
  app.add_option("-L,--tid", tids, "Only these threads")->type_name("LIST");
}

void DecideIds(std::string_view pids, std::string_view tids, BpfConfig& bpf) {
  bpf.pids = ParseIds("-p", pids);
  bpf.tids = ParseIds("-L", tids);
  if (!bpf.pids.empty() && !bpf.tids.empty()) {
    throw UsageError{"-p and -L contradict each other"};
  }
}

void AddTargetOptions(CLI::App& app, std::string& path, std::string& format,
                      std::string_view of_stdout) {
  app.add_option("-o,--output", path,
                 "Write to FILE, in the format that its extension names; else "
                 "to stdout")
      ->type_name("FILE");
  app.add_option("--format", format,
                 fmt::format("The format, whatever FILE is called (default {})",
                             of_stdout))
      ->type_name(FormatChoices());
}

void AddVerbosityOptions(CLI::App& app, ProfileOptions& options) {
  app.add_flag("-q,--quiet", options.quiet, "Nothing on stderr but errors");
  app.add_flag("-v,--verbose", options.verbose,
               "Say what is done, with libbpf's messages");
}

void DecideVerbosity(ProfileOptions& options) {
  if (options.quiet && options.verbose) {
    throw UsageError{"-q and -v contradict each other"};
  }
  options.capture.bpf.verbosity =
      options.verbose ? Verbosity::kVerbose : Verbosity::kNormal;
}

}  // namespace profd
