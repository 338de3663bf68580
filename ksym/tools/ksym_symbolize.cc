// Names addresses; see ksym-symbolize(1).

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "ksym/base/file.h"
#include "ksym/base/printable.h"
#include "ksym/tools/address_source.h"
#include "ksym/tools/symbolize_options.h"
#include "ksym/tools/symbolize_output.h"

namespace ksym {
namespace {

using Style = SymbolizeOptions::Style;

// What the arguments ask for, in one piece; JSON as one array.
Status AnswerArguments(const SymbolizeOptions& options, AddressSource& source) {
  std::string out;
  for (const uint64_t address : options.addresses) {
    const AddressAnswer answer = source.Resolve(address);
    if (options.style == Style::kLlvm) {
      AppendLlvmStyle(answer, out);
      continue;
    }
    out += out.empty() ? '[' : ',';
    AppendJson(address, answer, out);
  }
  if (options.style == Style::kJson) out += "]\n";
  return WriteAll(STDOUT_FILENO, out);
}

std::string_view Trimmed(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r\v\f";
  const size_t first = line.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(kSpace) - first + 1);
}

// One answer per line of the input, written before the next line is read, so
// that another program can ask and wait.
Status AnswerInput(const SymbolizeOptions& options, AddressSource& source) {
  Status written;
  const auto answer_line = [&](std::string_view line) {
    const auto address = ParseHexAddress(Trimmed(line));
    AddressAnswer answer;
    if (address) {
      answer = source.Resolve(*address);
    } else {
      answer.reason = "no-address";
    }
    std::string out;
    if (options.style == Style::kLlvm) {
      AppendLlvmStyle(answer, out);
    } else {
      AppendJson(address, answer, out);
      out += '\n';
    }
    written = WriteAll(STDOUT_FILENO, out);
    return written.has_value();
  };
  const auto read = ForEachLine(STDIN_FILENO, answer_line);
  if (!written) return written;
  return read;
}

int Run(int argc, char** argv) {
  const auto parsed = ParseSymbolizeOptions(argc, argv);
  if (!parsed.runs()) {
    if (!parsed.error_text.empty()) {
      fmt::print(stderr, "ksym-symbolize: {}\n", parsed.error_text);
    }
    const auto written = WriteAll(STDOUT_FILENO, parsed.output_text);
    return written ? parsed.exit_status : 1;
  }
  const SymbolizeOptions& options = parsed.options;
  const auto source = OpenAddressSource(options);
  Status status;
  if (!source) {
    status = Fail(source.error());
  } else if (options.addresses.empty()) {
    status = AnswerInput(options, **source);
  } else {
    status = AnswerArguments(options, **source);
  }
  if (status) return 0;
  std::string line;
  AppendPrintable(status.error().message(), line);
  fmt::print(stderr, "ksym-symbolize: {}\n", line);
  return 1;
}

}  // namespace
}  // namespace ksym

int main(int argc, char** argv) { return ksym::Run(argc, argv); }
