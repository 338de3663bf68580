// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/symbolize_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "ksym/base/printable.h"
#include "ksym/base/text.h"
#include "ksym/cli/completion.h"

namespace ksym {
namespace {

constexpr const char* kExamples = R"(Examples:
  ksym-symbolize -e /bin/ls 0x4a30        an address as the file's headers count
  ksym-symbolize -e prog --inlines 4a30   with inlined calls, file and line
  ksym-symbolize -p 1234 7f1c8e0261a0     a run-time address of a process
  ksym-symbolize -k < addresses           the kernel's, one per line
  ksym-symbolize --filter-markup < log    those in a log with markup
  ksym-symbolize --profile out.raw        those of a profile from elsewhere
)";

// Empty, or why not.
std::string SetAddresses(const std::vector<std::string>& texts,
                         SymbolizeOptions& options) {
  for (const std::string& text : texts) {
    const auto address = ParseHexAddress(text);
    if (!address) {
      return fmt::format("'{}' is not a hexadecimal address", text);
    }
    options.addresses.push_back(*address);
  }
  return {};
}

// What one of the words of an option means.
template <typename T>
using Words = std::map<std::string, T>;

const Words<SymbolizeOptions::Style> kStyles = {
    {"LLVM", SymbolizeOptions::Style::kLlvm},
    {"GNU", SymbolizeOptions::Style::kGnu},
    {"JSON", SymbolizeOptions::Style::kJson}};
const Words<FilterMarkupOptions::Color> kColors = {
    {"auto", FilterMarkupOptions::Color::kAuto},
    {"always", FilterMarkupOptions::Color::kAlways},
    {"never", FilterMarkupOptions::Color::kNever}};

// Empty, or why not. Not given: the value stays.
template <typename T>
std::string SetWord(std::string_view option, const std::string& word,
                    const Words<T>& words, T& value) {
  if (word.empty()) return {};
  const auto found = words.find(word);
  if (found != words.end()) {
    value = found->second;
    return {};
  }
  std::string known;
  for (const auto& [name, ignored] : words) {
    known += (known.empty() ? "" : ", ") + name;
  }
  return fmt::format("{} '{}' is none of {}", option, word, known);
}

// Where files are found by build-id: of --filter-markup and --profile.
void AddBuildIdOptions(CLI::App& app, FilterMarkupOptions& options) {
  auto* group =
      app.add_option_group("Build-ids", "With --filter-markup or --profile");
  group
      ->add_option("--debug-file-directory",
                   options.names.places.debug_directories,
                   "Find files in DIR/.build-id (default: "
                   "/usr/lib/debug); repeatable")
      ->type_name("DIR")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  group
      ->add_option("--gsym-directory", options.names.places.gsym_directories,
                   "Take functions, lines and inlined calls from GSYM "
                   "files in DIR/.build-id or DIR; repeatable")
      ->type_name("DIR")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  group
      ->add_option("--kernel-symbols", options.names.kernel_symbols,
                   "The log's kernel's symbols: a copy of /proc/kallsyms "
                   "(default: the running kernel's, if it is that one)")
      ->type_name("FILE");
}

bool HasBuildIdOptions(const CLI::App& app) {
  return app.count("--debug-file-directory") > 0 ||
         app.count("--gsym-directory") > 0 || app.count("--kernel-symbols") > 0;
}

// What CLI11 fills in that is not an option's value yet.
struct Given {
  std::vector<std::string> addresses;
  bool kernel = false;
  bool filter_markup = false;
  bool no_demangle = false;
  bool json = false;
  std::string color;
  std::string style;
  double timeout_seconds = 10;
  std::string profile_formats;  // what --format takes
};

// Options of --filter-markup only.
void AddMarkupOptions(CLI::App& app, FilterMarkupOptions& options,
                      Given& given) {
  auto* group = app.add_option_group("Markup", "With --filter-markup");
  const auto add = [&app](CLI::Option* option) {
    option->needs(app.get_option("--filter-markup"));
    return option;
  };
  add(group->add_option("--color", given.color,
                        "Colors: auto (the default), always or never"))
      ->type_name("auto|always|never")
      ->expected(0, 1)
      ->option_text("WHEN");
  add(group->add_option("--max-line", options.max_line_bytes,
                        "Filter longer lines in parts (default: 1 MiB)"))
      ->type_name("BYTES")
      ->check(CLI::Range(size_t{256}, size_t{1} << 30));
}

void AddSources(CLI::App& app, SymbolizeOptions& options, Given& given) {
  auto* sources = app.add_option_group("Source");
  sources->add_option("-e,--exe", options.file, "Name addresses of this file")
      ->type_name("FILE");
  sources
      ->add_option(
          "--gsym", options.file,
          "Name addresses by this GSYM file, with inlined calls and lines")
      ->type_name("FILE");
  sources->add_option("-p,--pid", options.pid, "Name addresses of this process")
      ->type_name("PID")
      ->check(CLI::Range(1u, 1u << 22));
  sources->add_flag("-k,--kernel", given.kernel, "Name kernel addresses");
  sources->add_flag("--filter-markup", given.filter_markup,
                    "Name the addresses in a log with symbolizer markup: "
                    "standard input to standard output");
  sources
      ->add_option("--profile", options.file,
                   "Name the addresses of a raw profile that ksym-profile "
                   "wrote")
      ->type_name("FILE");
  sources->require_option(1);
}

void AddOptions(CLI::App& app, SymbolizeOptions& options, Given& given) {
  app.add_flag("--no-demangle", given.no_demangle,
               "Print names as the files have them");
  app.add_flag("-i,--inlines", options.inlines,
               "With -e: inlined calls, source files and lines as well")
      ->needs(app.get_option("--exe"));
  app.add_flag("--json", given.json, "Print JSON");
  app.add_option("--output-style", given.style,
                 "LLVM (the default), GNU or JSON, as llvm-symbolizer has them")
      ->type_name("LLVM|GNU|JSON")
      ->option_text("STYLE")
      ->excludes("--json");
  app.add_flag("--debuginfod", options.debuginfod,
               "Fetch debug files of stripped files from the servers of "
               "DEBUGINFOD_URLS");
  app.add_option("--symbol-timeout", given.timeout_seconds,
                 "Wait for those servers no longer, all together (default 10)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.001, 3600.0));
  app.add_option("ADDR", given.addresses,
                 "Hexadecimal addresses; none: one per line of the input");
  AddBuildIdOptions(app, options.markup);
  AddMarkupOptions(app, options.markup, given);
  app.add_option("--format", options.format,
                 "With --profile: as ksym-profile has them (default folded)")
      ->type_name(given.profile_formats)
      ->needs(app.get_option("--profile"));
  AddCompletionOption(app);
}

// Empty, or why not.
std::string Take(const CLI::App& app, const Given& given,
                 SymbolizeOptions& options) {
  using Source = SymbolizeOptions::Source;
  const bool is_profile = app.count("--profile") > 0;
  if (app.count("--pid") > 0) options.source = Source::kProcess;
  if (app.count("--gsym") > 0) options.source = Source::kGsym;
  if (given.kernel) options.source = Source::kKernel;
  if (given.filter_markup) options.source = Source::kMarkup;
  if (is_profile) options.source = Source::kProfile;
  // Alone it means always, as llvm-symbolizer has it.
  if (app.count("--color") > 0 && given.color.empty()) {
    options.markup.color = FilterMarkupOptions::Color::kAlways;
  }
  std::string wrong =
      SetWord("--color", given.color, kColors, options.markup.color);
  if (wrong.empty()) {
    wrong = SetWord("--output-style", given.style, kStyles, options.style);
  }
  if (!wrong.empty()) return wrong;
  if (given.json) options.style = SymbolizeOptions::Style::kJson;
  options.symbol_timeout = std::chrono::ceil<std::chrono::milliseconds>(
      std::chrono::duration<double>(given.timeout_seconds));
  if (given.no_demangle) {
    options.demangle = SymbolizerOptions::Demangle::kOff;
    options.markup.names.demangle = options.demangle;
  }
  const bool by_build_id = given.filter_markup || is_profile;
  if (by_build_id && (given.json || !given.addresses.empty())) {
    return "--filter-markup and --profile exclude --json and addresses";
  }
  if (!by_build_id && HasBuildIdOptions(app)) {
    return "--debug-file-directory, --gsym-directory and --kernel-symbols need "
           "--filter-markup or --profile";
  }
  return SetAddresses(given.addresses, options);
}

}  // namespace

std::optional<uint64_t> ParseHexAddress(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return ParseUnsigned(text, 16);
}

ParsedSymbolizeOptions ParseSymbolizeOptions(
    int argc, const char* const* argv, const std::string& profile_formats) {
  CLI::App app("Names addresses of a file, a process or the kernel.",
               "ksym-symbolize");
  app.footer(kExamples);
  app.set_version_flag("--version", "ksym-symbolize " KSYM_VERSION);
  ParsedSymbolizeOptions parsed;
  Given given;
  given.profile_formats = profile_formats;
  AddSources(app, parsed.options, given);
  AddOptions(app, parsed.options, given);
  try {
    app.parse(argc, argv);
    parsed.error_text = Take(app, given, parsed.options);
  } catch (const CLI::CallForHelp&) {
    parsed.output_text = app.help();
  } catch (const CLI::CallForVersion& version) {
    parsed.output_text = std::string(version.what()) + "\n";
  } catch (const CLI::ParseError& error) {
    parsed.error_text = error.what();
  }
  if (!parsed.error_text.empty()) {
    parsed.exit_status = 2;
    std::string line;
    // It repeats arguments, which may hold what a terminal obeys.
    AppendPrintable(parsed.error_text, line);
    parsed.error_text = line + " (see --help)";
  }
  return parsed;
}

}  // namespace ksym
