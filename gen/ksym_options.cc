#include "gen/ksym_options.h"

#include "ksym/base/text.h"

namespace gen {
namespace {

using Action = KsymOptions::Action;

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

class OptionParser {
 public:
  explicit OptionParser(std::span<const std::string_view> arguments)
      : arguments_(arguments) {}

  ksym::Result<KsymOptions> Parse();

 private:
  ksym::Status ParseOption(std::string_view option);
  ksym::Status SetAction(Action action);
  ksym::Result<std::string_view> Value(std::string_view option);
  ksym::Status ParseFormat(std::string_view option);
  ksym::Status ParseBound(std::string_view option,
                          std::optional<ksym::Address>& bound);
  ksym::Status TakeOperands();

  std::span<const std::string_view> arguments_;
  size_t next_ = 0;
  std::vector<std::string_view> operands_;
  KsymOptions options_;
};

ksym::Result<std::string_view> OptionParser::Value(std::string_view option) {
  if (next_ == arguments_.size()) {
    return Invalid(std::string(option) + " needs an argument");
  }
  return arguments_[next_++];
}

ksym::Status OptionParser::SetAction(Action action) {
  if (options_.action != Action::kGenerate) {
    return Invalid("only one of --dump, --lookup, --name and --stats");
  }
  options_.action = action;
  return {};
}

ksym::Status OptionParser::ParseFormat(std::string_view option) {
  const auto value = Value(option);
  if (!value) return ksym::Fail(value.error());
  if (*value == "ksym") {
    options_.format = KsymOptions::Format::kBlob;
  } else if (*value == "compact") {
    options_.format = KsymOptions::Format::kCompact;
  } else {
    return Invalid("--format is ksym or compact, not '" + std::string(*value) +
                   "'");
  }
  return {};
}

ksym::Status OptionParser::ParseBound(std::string_view option,
                                      std::optional<ksym::Address>& bound) {
  const auto value = Value(option);
  if (!value) return ksym::Fail(value.error());
  const auto address = ParseAddress(*value);
  if (!address) return ksym::Fail(address.error());
  bound = *address;
  return {};
}

ksym::Status OptionParser::ParseOption(std::string_view option) {
  const auto take = [&](std::string& to) -> ksym::Status {
    const auto value = Value(option);
    if (!value) return ksym::Fail(value.error());
    to = *value;
    return {};
  };
  if (option == "--dump") return SetAction(Action::kDump);
  if (option == "--lookup") return SetAction(Action::kLookup);
  if (option == "--name") return SetAction(Action::kName);
  if (option == "--stats") return SetAction(Action::kStats);
  if (option == "-h" || option == "--help") return SetAction(Action::kHelp);
  if (option == "--version") return SetAction(Action::kVersion);
  if (option == "--format") return ParseFormat(option);
  if (option == "--types") {
    if (auto ok = take(options_.types); !ok) return ok;
    if (options_.types.empty()) return Invalid("--types names no type");
    return {};
  }
  if (option == "-o" || option == "--output") return take(options_.output);
  if (option == "--stext") return ParseBound(option, options_.stext);
  if (option == "--etext") return ParseBound(option, options_.etext);
  if (option == "--demangle") {
    options_.names = KsymOptions::Names::kDemangled;
    return {};
  }
  return Invalid("unknown option '" + std::string(option) + "'");
}

ksym::Status OptionParser::TakeOperands() {
  const bool generates = options_.action == Action::kGenerate;
  const bool queries =
      options_.action == Action::kLookup || options_.action == Action::kName;
  if (!operands_.empty()) options_.input = operands_.front();
  if (generates && options_.input == "-") options_.input.clear();
  if (options_.output == "-") options_.output.clear();
  if (!generates && options_.input.empty()) {
    return Invalid("a FILE to read is missing");
  }
  if (!queries && operands_.size() > 1) {
    return Invalid("more than one file: '" + std::string(operands_[1]) + "'");
  }
  if (queries && operands_.size() < 2) {
    return Invalid("nothing to look up after FILE");
  }
  for (size_t i = 1; i < operands_.size(); ++i) {
    if (options_.action == Action::kName) {
      options_.symbol_names.emplace_back(operands_[i]);
      continue;
    }
    const auto address = ParseAddress(operands_[i]);
    if (!address) return ksym::Fail(address.error());
    options_.addresses.push_back(*address);
  }
  return {};
}

ksym::Result<KsymOptions> OptionParser::Parse() {
  bool options_ended = false;
  while (next_ < arguments_.size()) {
    const std::string_view argument = arguments_[next_++];
    if (options_ended || argument == "-" || !argument.starts_with('-')) {
      operands_.push_back(argument);
    } else if (argument == "--") {
      options_ended = true;
    } else if (auto ok = ParseOption(argument); !ok) {
      return ksym::Fail(std::move(ok.error()));
    }
  }
  if (options_.action == Action::kHelp || options_.action == Action::kVersion) {
    return options_;
  }
  if (options_.stext && options_.etext && *options_.etext < *options_.stext) {
    return Invalid("--etext is below --stext");
  }
  if (auto ok = TakeOperands(); !ok) return ksym::Fail(std::move(ok.error()));
  return options_;
}

}  // namespace

const std::string_view kKsymUsage =
    "usage: gen_ksym [--format ksym|compact] [--types LETTERS] [--demangle]\n"
    "                [--stext ADDR --etext ADDR] [-o FILE] [INPUT]\n"
    "       gen_ksym --dump FILE\n"
    "       gen_ksym --lookup FILE ADDR...\n"
    "       gen_ksym --name FILE NAME...\n"
    "       gen_ksym --stats FILE\n"
    "\n"
    "Makes a symbol blob of a listing (/proc/kallsyms, System.map, nm -n), or\n"
    "reads a blob, a compact map or a listing.\n";

ksym::Result<KsymOptions> ParseKsymOptions(
    std::span<const std::string_view> arguments) {
  return OptionParser(arguments).Parse();
}

}  // namespace gen
