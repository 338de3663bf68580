// SPDX-License-Identifier: Apache-2.0
#include "gen/ksym_options.h"

#include <CLI/CLI.hpp>
#include <map>
#include <utility>

#include "ksym/base/text.h"
#include "ksym/cli/completion.h"

namespace gen {
namespace {

using Action = KsymOptions::Action;

constexpr const char* kExamples = R"(Examples:
  gen_ksym --format compact -o kernel.map < /proc/kallsyms
  gen_ksym --lookup kernel.map ffffffff81000010
  gen_ksym --stats kernel.map
)";

std::unexpected<ksym::Error> Invalid(std::string what) {
  return ksym::Fail(ksym::ErrorCode::kInvalid, std::move(what));
}

ksym::Result<ksym::Address> ParseAddress(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    digits.remove_prefix(2);
  }
  const auto value = ksym::ParseUnsigned(digits, 16);
  if (value) return ksym::Address{*value};
  return Invalid("'" + std::string(text) + "' is not a hexadecimal address");
}

// What CLI11 fills in before it is looked at as a whole.
struct RawOptions {
  bool dump = false;
  bool lookup = false;
  bool name = false;
  bool stats = false;
  bool demangle = false;
  std::string stext;
  std::string etext;
  std::vector<std::string> operands;
};

void AddOptions(CLI::App& app, RawOptions& raw, KsymOptions& options) {
  using Format = KsymOptions::Format;
  static const std::map<std::string, Format> kFormats = {
      {"ksym", Format::kBlob}, {"compact", Format::kCompact}};
  app.add_option("--format", options.format,
                 "ksym (the default): a blob that programs map; compact: the "
                 "profiler's own table, with modules")
      ->type_name("ksym|compact")
      ->transform(CLI::CheckedTransformer(kFormats))
      ->option_text("ksym|compact");
  app.add_option("--types", options.types,
                 "Keep only symbols of these types, as nm has them")
      ->type_name("LETTERS");
  app.add_flag("--demangle", raw.demangle,
               "Write the source-level names of C++, Rust and D symbols");
  app.add_option("--stext", raw.stext, "Leave symbols before this out")
      ->type_name("ADDR");
  app.add_option("--etext", raw.etext, "Leave symbols from this on out")
      ->type_name("ADDR");
  app.add_option("-o,--output", options.output,
                 "Write to FILE instead of standard output")
      ->type_name("FILE");
  app.add_flag("--dump", raw.dump, "Print all symbols of INPUT as a listing");
  app.add_flag("--lookup", raw.lookup,
               "Print the symbols of INPUT that contain addresses");
  app.add_flag("--name", raw.name,
               "Print the addresses of the symbols with these names");
  app.add_flag("--stats", raw.stats, "Print the bytes of each part of INPUT");
  app.add_option("INPUT", raw.operands,
                 "A listing (/proc/kallsyms, System.map, nm -n), blob or map; "
                 "none: a listing from standard input. Then what to look up");
  ksym::AddCompletionOption(app);
}

ksym::Status SetAction(const RawOptions& raw, KsymOptions& options) {
  const std::pair<bool, Action> actions[] = {{raw.dump, Action::kDump},
                                             {raw.lookup, Action::kLookup},
                                             {raw.name, Action::kName},
                                             {raw.stats, Action::kStats}};
  for (const auto& [is_wanted, action] : actions) {
    if (!is_wanted) continue;
    if (options.action != Action::kGenerate) {
      return Invalid("only one of --dump, --lookup, --name and --stats");
    }
    options.action = action;
  }
  return {};
}

ksym::Status SetBounds(const CLI::App& app, const RawOptions& raw,
                       KsymOptions& options) {
  const auto set = [&app](const char* option, const std::string& text,
                          std::optional<ksym::Address>& bound) -> ksym::Status {
    if (app.count(option) == 0) return {};
    const auto address = ParseAddress(text);
    if (!address) return ksym::Fail(address.error());
    bound = *address;
    return {};
  };
  if (auto ok = set("--stext", raw.stext, options.stext); !ok) return ok;
  if (auto ok = set("--etext", raw.etext, options.etext); !ok) return ok;
  if (options.stext && options.etext && *options.etext < *options.stext) {
    return Invalid("--etext is below --stext");
  }
  return {};
}

ksym::Status TakeOperands(const std::vector<std::string>& operands,
                          KsymOptions& options) {
  const bool generates = options.action == Action::kGenerate;
  const bool queries =
      options.action == Action::kLookup || options.action == Action::kName;
  if (!operands.empty()) options.input = operands.front();
  if (generates && options.input == "-") options.input.clear();
  if (options.output == "-") options.output.clear();
  if (!generates && options.input.empty()) {
    return Invalid("a FILE to read is missing");
  }
  if (!queries && operands.size() > 1) {
    return Invalid("more than one file: '" + operands[1] + "'");
  }
  if (queries && operands.size() < 2) {
    return Invalid("nothing to look up after FILE");
  }
  for (size_t i = 1; i < operands.size(); ++i) {
    if (options.action == Action::kName) {
      options.symbol_names.push_back(operands[i]);
      continue;
    }
    const auto address = ParseAddress(operands[i]);
    if (!address) return ksym::Fail(address.error());
    options.addresses.push_back(*address);
  }
  return {};
}

ksym::Result<KsymOptions> Decide(const CLI::App& app, const RawOptions& raw,
                                 KsymOptions options) {
  if (raw.demangle) options.names = KsymOptions::Names::kDemangled;
  if (app.count("--types") > 0 && options.types.empty()) {
    return Invalid("--types names no type");
  }
  if (auto ok = SetAction(raw, options); !ok) return ksym::Fail(ok.error());
  if (auto ok = SetBounds(app, raw, options); !ok)
    return ksym::Fail(ok.error());
  if (auto ok = TakeOperands(raw.operands, options); !ok) {
    return ksym::Fail(ok.error());
  }
  return options;
}

}  // namespace

ksym::Result<KsymOptions> ParseKsymOptions(
    std::span<const std::string_view> arguments) {
  CLI::App app(
      "Makes a table of a listing of the kernel's symbols, or reads one.",
      "gen_ksym");
  app.footer(kExamples);
  app.set_version_flag("--version", "gen_ksym " KSYM_VERSION);
  RawOptions raw;
  KsymOptions options;
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
  return Decide(app, raw, std::move(options));
}

}  // namespace gen
