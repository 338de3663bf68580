// SPDX-License-Identifier: Apache-2.0
#include "ksym/cli/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace ksym {
namespace {

enum class ValueKind { kNone, kWords, kFile, kDirectory, kProcess, kOther };

// What a shell needs to know of an option.
struct Entry {
  std::vector<std::string> short_names;  // without "-"
  std::vector<std::string> long_names;   // without "--"
  std::string description;
  std::string value_name;
  ValueKind value = ValueKind::kNone;
  std::vector<std::string> words;

  [[nodiscard]] std::vector<std::string> Spellings() const {
    std::vector<std::string> spellings;
    spellings.reserve(short_names.size() + long_names.size());
    for (const auto& name : short_names) spellings.push_back("-" + name);
    for (const auto& name : long_names) spellings.push_back("--" + name);
    return spellings;
  }
};

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

void SetValue(const CLI::Option& option, Entry& entry) {
  if (option.get_items_expected_max() == 0) return;
  // What follows a colon comes from checks: "FLOAT in [0 - 1]".
  const std::string type = option.get_type_name();
  entry.value_name = type.substr(0, type.find(':'));
  if (entry.value_name.find('|') != std::string::npos) {
    entry.value = ValueKind::kWords;
    entry.words = Split(entry.value_name, '|');
    entry.value_name = "value";
  } else if (entry.value_name == "FILE" || entry.value_name == "PATH") {
    entry.value = ValueKind::kFile;
  } else if (entry.value_name == "DIR") {
    entry.value = ValueKind::kDirectory;
  } else if (entry.value_name == "PID") {
    entry.value = ValueKind::kProcess;
  } else {
    entry.value = ValueKind::kOther;
  }
}

void AppendEntries(const CLI::App& app, std::vector<Entry>& entries) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || !option->nonpositional()) continue;
    Entry entry;
    entry.short_names = option->get_snames();
    entry.long_names = option->get_lnames();
    entry.description = option->get_description();
    SetValue(*option, entry);
    entries.push_back(std::move(entry));
  }
  // Groups of options are subcommands without a name.
  const auto is_group = [](const CLI::App* part) {
    return part->get_name().empty();
  };
  for (const CLI::App* group : app.get_subcommands(is_group)) {
    AppendEntries(*group, entries);
  }
}

std::vector<Entry> EntriesOf(const CLI::App& app) {
  std::vector<Entry> entries;
  AppendEntries(app, entries);
  return entries;
}

// In single quotes, for all three shells; a backslash, which fish alone takes
// for more than itself there, is in no description.
std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

// The program's name as a part of a shell function's name.
std::string FunctionName(const CLI::App& app) {
  std::string name = "_" + app.get_name();
  std::ranges::replace(name, '-', '_');
  return name;
}

// The words of COMPREPLY for an option's value; empty: files, which is what
// bash completes when there are none.
std::string BashAction(const Entry& entry) {
  constexpr std::string_view kReply =
      "mapfile -t COMPREPLY < <(compgen {} -- "
      "\"$word\")";
  switch (entry.value) {
    case ValueKind::kWords:
      return fmt::format(
          fmt::runtime(kReply),
          "-W " + Quoted(fmt::format("{}", fmt::join(entry.words, " "))));
    case ValueKind::kDirectory:
      return fmt::format(fmt::runtime(kReply), "-d");
    case ValueKind::kProcess:
      return fmt::format(fmt::runtime(kReply), "-W \"$(ps -A -o pid=)\"");
    case ValueKind::kFile:
      return ":";
    default:
      return "compopt +o default";
  }
}

// Words that do something else with the rest of the line, such as `report`.
std::vector<const CLI::App*> CommandsOf(const CLI::App* commands) {
  if (commands == nullptr) return {};
  return commands->get_subcommands(
      [](const CLI::App* part) { return !part->get_name().empty(); });
}

std::string NamesOf(const std::vector<const CLI::App*>& commands) {
  std::string names;
  for (const CLI::App* command : commands) {
    names += (names.empty() ? "" : " ") + command->get_name();
  }
  return names;
}

// The cases of a function that completes an option's value, and the options.
struct BashParts {
  std::string values;
  std::string options;
};

BashParts BashPartsOf(const CLI::App& app) {
  BashParts parts;
  std::vector<std::string> all;
  for (const Entry& entry : EntriesOf(app)) {
    const auto spellings = entry.Spellings();
    all.insert(all.end(), spellings.begin(), spellings.end());
    if (entry.value == ValueKind::kNone) continue;
    parts.values += fmt::format("    {}) {}; return ;;\n",
                                fmt::join(spellings, "|"), BashAction(entry));
  }
  parts.options = Quoted(fmt::format("{}", fmt::join(all, " ")));
  return parts;
}

// A function for the options of a command, which calls it with what
// bash has before and at the cursor.
std::string BashCommand(const std::string& function, const CLI::App& command) {
  const BashParts parts = BashPartsOf(command);
  return fmt::format(R"({}_{}() {{
  local word=$1 option=$2
  case $option in
{}  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W {} -- "$word")
  fi
}}
)",
                     function, command.get_name(), parts.values, parts.options);
}

// Where a command's word is complete, and where it is still to come.
std::string BashDispatch(const std::string& function,
                         const std::vector<const CLI::App*>& commands) {
  if (commands.empty()) return {};
  std::string cases;
  for (const CLI::App* command : commands) {
    cases += fmt::format("      {}) {}_{} \"$word\" \"$option\"; return ;;\n",
                         command->get_name(), function, command->get_name());
  }
  return fmt::format(R"(  if ((COMP_CWORD > 1)); then
    case ${{COMP_WORDS[1]}} in
{}    esac
  elif [[ $word != -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W {} -- "$word")
  fi
)",
                     cases, Quoted(NamesOf(commands)));
}

std::string BashScript(const CLI::App& app, const CLI::App* commands) {
  const std::string function = FunctionName(app);
  const auto words = CommandsOf(commands);
  std::string functions;
  for (const CLI::App* command : words) {
    functions += BashCommand(function, *command);
  }
  const BashParts parts = BashPartsOf(app);
  return fmt::format(
      R"(# bash completion for {name}; made by {name} --completion bash.
{functions}{function}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} option=${{COMP_WORDS[COMP_CWORD-1]}} i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then
      if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
      elif ((i + 1 == COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
      fi
      return
    fi
  done
  # bash takes --option=value for three words.
  if [[ $word == = ]]; then
    word=
  elif [[ $option == = ]]; then
    option=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
{dispatch}  case $option in
{values}  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W {all} -- "$word")
  fi
}}
complete -o default -F {function} {name}
)",
      fmt::arg("name", app.get_name()), fmt::arg("function", function),
      fmt::arg("functions", functions),
      fmt::arg("dispatch", BashDispatch(function, words)),
      fmt::arg("values", parts.values), fmt::arg("all", parts.options));
}

// Within a specification of _arguments, colons and brackets have a meaning.
std::string ZshText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string ZshAction(const Entry& entry) {
  switch (entry.value) {
    case ValueKind::kWords:
      return fmt::format("({})", fmt::join(entry.words, " "));
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kDirectory:
      return "_files -/";
    case ValueKind::kProcess:
      return "_pids";
    default:
      return " ";
  }
}

// One line of _arguments per spelling of an option.
std::string ZshArguments(const CLI::App& app) {
  std::string arguments;
  for (const Entry& entry : EntriesOf(app)) {
    const auto spellings = entry.Spellings();
    std::string rest = "[" + ZshText(entry.description) + "]";
    if (entry.value != ValueKind::kNone) {
      rest += ":" + ZshText(entry.value_name) + ":" + ZshAction(entry);
    }
    for (const std::string& spelling : spellings) {
      arguments += fmt::format(
          "  {}\\\n", Quoted(fmt::format("({}){}{}", fmt::join(spellings, " "),
                                         spelling, rest)) +
                          " ");
    }
  }
  return arguments;
}

std::string ZshCommands(const std::vector<const CLI::App*>& commands) {
  if (commands.empty()) return {};
  std::string cases;
  for (const CLI::App* command : commands) {
    cases += fmt::format(R"({})
  shift words
  ((CURRENT--))
  _arguments -s -S \
{}  '*:file:_files'
  return
  ;;
)",
                         command->get_name(), ZshArguments(*command));
  }
  return fmt::format(R"(if ((CURRENT > 2)); then
case $words[2] in
{}esac
elif [[ $words[2] != -* ]]; then
  compadd {}
fi
)",
                     cases, NamesOf(commands));
}

std::string ZshScript(const CLI::App& app, const CLI::App* commands) {
  return fmt::format(
      R"(#compdef {name}
# zsh completion for {name}; made by {name} --completion zsh.
{commands}_arguments -s -S \
{arguments}  '*:: :_normal'
)",
      fmt::arg("name", app.get_name()),
      fmt::arg("commands", ZshCommands(CommandsOf(commands))),
      fmt::arg("arguments", ZshArguments(app)));
}

std::string FishValue(const Entry& entry) {
  switch (entry.value) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kWords:
      return fmt::format(" -x -a '{}'", fmt::join(entry.words, " "));
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kDirectory:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kProcess:
      return " -x -a '(__fish_complete_pids)'";
    case ValueKind::kOther:
      break;
  }
  return " -x";
}

// `condition`: a fish command that says where the options are of use.
std::string FishOptions(const CLI::App& app, const std::string& program,
                        const std::string& condition) {
  std::string script;
  for (const Entry& entry : EntriesOf(app)) {
    script += fmt::format("complete -c {}{}", program, condition);
    for (const auto& name : entry.short_names) script += " -s " + name;
    for (const auto& name : entry.long_names) script += " -l " + name;
    script += FishValue(entry) + " -d " + Quoted(entry.description) + "\n";
  }
  return script;
}

std::string FishScript(const CLI::App& app, const CLI::App* commands) {
  const std::string& program = app.get_name();
  std::string script = fmt::format(
      "# fish completion for {0}; made by {0} --completion fish.\n", program);
  const auto words = CommandsOf(commands);
  std::string without_command;
  if (!words.empty()) {
    without_command =
        fmt::format(" -n 'not __fish_seen_subcommand_from {}'", NamesOf(words));
  }
  script += FishOptions(app, program, without_command);
  for (const CLI::App* command : words) {
    script += fmt::format(
        "complete -c {} -n __fish_use_subcommand -a {} -d {}\n", program,
        command->get_name(), Quoted(command->get_description()));
    script += FishOptions(*command, program,
                          fmt::format(" -n '__fish_seen_subcommand_from {}'",
                                      command->get_name()));
  }
  return script;
}

constexpr std::array<std::pair<std::string_view, Shell>, 3> kShells{
    {{"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}}};

}  // namespace

std::optional<Shell> ParseShell(std::string_view name) {
  for (const auto& [known, shell] : kShells) {
    if (known == name) return shell;
  }
  return std::nullopt;
}

std::string CompletionScript(const CLI::App& app, Shell shell,
                             const CLI::App* commands) {
  switch (shell) {
    case Shell::kBash:
      return BashScript(app, commands);
    case Shell::kZsh:
      return ZshScript(app, commands);
    case Shell::kFish:
      break;
  }
  return FishScript(app, commands);
}

void AddCompletionOption(CLI::App& app, const CLI::App* commands) {
  app.add_option_function<std::string>(
         "--completion",
         [&app, commands](const std::string& name) {
           const auto shell = ParseShell(name);
           if (!shell) {
             throw CLI::ValidationError(
                 "--completion", "'" + name + "' is none of bash, zsh, fish");
           }
           std::string script = CompletionScript(app, *shell, commands);
           script.pop_back();  // the way of --version adds the last newline
           throw CLI::CallForVersion(std::move(script), 0);
         },
         "Print a completion script for this shell")
      ->type_name("bash|zsh|fish");
}

}  // namespace ksym
