#include "gen/gsym_options.h"

#include <vector>

#include "ksym/base/text.h"

namespace gen {
namespace {

using Action = GsymOptions::Action;

constexpr uint64_t kMaxThreads = 1024;

std::unexpected<ksym::Error> Invalid(std::string what) {
  return ksym::Fail(ksym::ErrorCode::kInvalid, std::move(what));
}

class OptionParser {
 public:
  explicit OptionParser(std::span<const std::string_view> arguments)
      : arguments_(arguments) {}

  ksym::Result<GsymOptions> Parse() {
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
    if (options_.action == Action::kHelp ||
        options_.action == Action::kVersion) {
      return options_;
    }
    if (auto ok = TakeOperands(); !ok) return ksym::Fail(std::move(ok.error()));
    return options_;
  }

 private:
  ksym::Status ParseOption(std::string_view option) {
    if (option == "--dump") return SetAction(Action::kDump);
    if (option == "--stats") return SetAction(Action::kStats);
    if (option == "--verify") return SetAction(Action::kVerify);
    if (option == "-h" || option == "--help") return SetAction(Action::kHelp);
    if (option == "--version") return SetAction(Action::kVersion);
    if (option == "--format-version") return ParseVersion(option);
    if (option == "--threads") return ParseThreads(option);
    if (option == "-o" || option == "--output") {
      const auto value = Value(option);
      if (!value) return ksym::Fail(value.error());
      options_.output = *value;
      return {};
    }
    if (option == "--no-inlines") {
      options_.dwarf.inlines = ksym::DwarfReadOptions::Inlines::kSkip;
    } else if (option == "--no-lines") {
      options_.dwarf.lines = ksym::DwarfReadOptions::Lines::kSkip;
    } else if (option == "-q" || option == "--quiet") {
      options_.messages = GsymOptions::Messages::kErrorsOnly;
    } else {
      return Invalid("unknown option '" + std::string(option) + "'");
    }
    return {};
  }

  ksym::Result<std::string_view> Value(std::string_view option) {
    if (next_ == arguments_.size()) {
      return Invalid(std::string(option) + " needs an argument");
    }
    return arguments_[next_++];
  }

  ksym::Status SetAction(Action action) {
    if (options_.action != Action::kConvert) {
      return Invalid("only one of --dump, --stats and --verify");
    }
    options_.action = action;
    return {};
  }

  ksym::Status ParseVersion(std::string_view option) {
    const auto value = Value(option);
    if (!value) return ksym::Fail(value.error());
    if (*value != "1" && *value != "2") {
      return Invalid("--format-version is 1 or 2, not '" + std::string(*value) +
                     "'");
    }
    options_.version =
        *value == "1" ? ksym::GsymVersion::k1 : ksym::GsymVersion::k2;
    return {};
  }

  ksym::Status ParseThreads(std::string_view option) {
    const auto value = Value(option);
    if (!value) return ksym::Fail(value.error());
    const auto count = ksym::ParseUnsigned(*value, 10);
    if (!count || *count < 1 || *count > kMaxThreads) {
      return Invalid("--threads is 1 to 1024, not '" + std::string(*value) +
                     "'");
    }
    options_.threads = static_cast<size_t>(*count);
    return {};
  }

  ksym::Status TakeOperands() {
    const bool verifies = options_.action == Action::kVerify;
    const size_t wanted = verifies ? 2 : 1;
    if (operands_.size() < wanted) {
      return Invalid(verifies ? "--verify needs a GSYM file and its program"
                              : "a FILE to read is missing");
    }
    if (operands_.size() > wanted) {
      return Invalid("too many files: '" + std::string(operands_[wanted]) +
                     "'");
    }
    options_.input = operands_[0];
    if (verifies) options_.program = operands_[1];
    if (options_.output.empty()) options_.output = options_.input + ".gsym";
    return {};
  }

  std::span<const std::string_view> arguments_;
  size_t next_ = 0;
  std::vector<std::string_view> operands_;
  GsymOptions options_;
};

}  // namespace

const std::string_view kGsymUsage =
    "usage: gen_gsym [-o OUT] [--no-inlines] [--no-lines]\n"
    "                [--format-version 1|2] [--threads N] [--quiet] FILE\n"
    "       gen_gsym --dump GSYM\n"
    "       gen_gsym --stats GSYM\n"
    "       gen_gsym --verify GSYM FILE\n"
    "\n"
    "Makes a GSYM file of a program with DWARF, its own or its debug file's,\n"
    "or of a Breakpad symbol file, and prints, measures or checks one.\n";

ksym::Result<GsymOptions> ParseGsymOptions(
    std::span<const std::string_view> arguments) {
  return OptionParser(arguments).Parse();
}

}  // namespace gen
