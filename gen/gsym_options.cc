// SPDX-License-Identifier: Apache-2.0
#include "gen/gsym_options.h"

#include <CLI/CLI.hpp>
#include <map>
#include <utility>
#include <vector>

#include "ksym/cli/completion.h"

namespace gen {
namespace {

using Action = GsymOptions::Action;

constexpr size_t kMaxThreads = 1024;

constexpr const char* kExamples = R"(Examples:
  gen_gsym -o server.gsym server     functions, lines and inlined calls
  gen_gsym --verify server.gsym server
  gen_gsym --dump server.gsym
)";

std::unexpected<ksym::Error> Invalid(std::string what) {
  return ksym::Fail(ksym::ErrorCode::kInvalid, std::move(what));
}

// What CLI11 fills in before it is looked at as a whole.
struct RawOptions {
  bool dump = false;
  bool stats = false;
  bool verify = false;
  bool no_inlines = false;
  bool no_lines = false;
  bool quiet = false;
  std::vector<std::string> operands;
};

void AddOptions(CLI::App& app, RawOptions& raw, GsymOptions& options) {
  using Version = ksym::GsymVersion;
  static const std::map<std::string, Version> kVersions = {{"1", Version::k1},
                                                           {"2", Version::k2}};
  app.add_option("-o,--output", options.output,
                 "The GSYM file to write (default: FILE.gsym)")
      ->type_name("FILE");
  app.add_flag("--no-inlines", raw.no_inlines, "Leave inlined calls out");
  app.add_flag("--no-lines", raw.no_lines, "Leave source lines out");
  app.add_option("--format-version", options.version,
                 "The format's version (default 1)")
      ->type_name("1|2")
      ->transform(CLI::CheckedTransformer(kVersions))
      ->option_text("1|2");
  app.add_option("--threads", options.threads,
                 "Read the debug data with as many threads (default 1)")
      ->type_name("N")
      ->check(CLI::Range(size_t{1}, kMaxThreads));
  app.add_flag("-q,--quiet", raw.quiet, "Print errors only");
  app.add_flag("--dump", raw.dump, "Print all that is in a GSYM file");
  app.add_flag("--stats", raw.stats, "Print the bytes of each part of one");
  app.add_flag("--verify", raw.verify,
               "Compare one with the FILE that it was made of");
  app.add_option("FILE", raw.operands,
                 "A program with DWARF, its own or its debug file's, or a "
                 "Breakpad symbol file; with --dump and others a GSYM file");
  ksym::AddCompletionOption(app);
}

ksym::Status SetAction(const RawOptions& raw, GsymOptions& options) {
  const std::pair<bool, Action> actions[] = {{raw.dump, Action::kDump},
                                             {raw.stats, Action::kStats},
                                             {raw.verify, Action::kVerify}};
  for (const auto& [is_wanted, action] : actions) {
    if (!is_wanted) continue;
    if (options.action != Action::kConvert) {
      return Invalid("only one of --dump, --stats and --verify");
    }
    options.action = action;
  }
  return {};
}

ksym::Status TakeOperands(const std::vector<std::string>& operands,
                          GsymOptions& options) {
  const bool verifies = options.action == Action::kVerify;
  const size_t wanted = verifies ? 2 : 1;
  if (operands.size() < wanted) {
    return Invalid(verifies ? "--verify needs a GSYM file and its program"
                            : "a FILE to read is missing");
  }
  if (operands.size() > wanted) {
    return Invalid("too many files: '" + operands[wanted] + "'");
  }
  options.input = operands[0];
  if (verifies) options.program = operands[1];
  if (options.output.empty()) options.output = options.input + ".gsym";
  return {};
}

ksym::Result<GsymOptions> Decide(const RawOptions& raw, GsymOptions options) {
  if (raw.no_inlines) {
    options.dwarf.inlines = ksym::DwarfReadOptions::Inlines::kSkip;
  }
  if (raw.no_lines) {
    options.dwarf.lines = ksym::DwarfReadOptions::Lines::kSkip;
  }
  if (raw.quiet) options.messages = GsymOptions::Messages::kErrorsOnly;
  if (auto ok = SetAction(raw, options); !ok) return ksym::Fail(ok.error());
  if (auto ok = TakeOperands(raw.operands, options); !ok) {
    return ksym::Fail(ok.error());
  }
  return options;
}

}  // namespace

ksym::Result<GsymOptions> ParseGsymOptions(
    std::span<const std::string_view> arguments) {
  CLI::App app("Makes, prints and checks GSYM files.", "gen_gsym");
  app.footer(kExamples);
  app.set_version_flag("--version", "gen_gsym " KSYM_VERSION);
  RawOptions raw;
  GsymOptions options;
  AddOptions(app, raw, options);
  try {
    // CLI11 takes the last argument first.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    options.action = Action::kPrint;
    options.text = app.help();
    return options;
  } catch (const CLI::CallForVersion& version) {
    options.action = Action::kPrint;
    options.text = std::string(version.what()) + "\n";
    return options;
  } catch (const CLI::ParseError& error) {
    return Invalid(error.what());
  }
  return Decide(raw, std::move(options));
}

}  // namespace gen
