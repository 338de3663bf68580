// Names addresses; see ksym-symbolize(1).

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/printable.h"
#include "ksym/elf/debuginfod_client.h"
#include "ksym/tools/address_source.h"
#include "ksym/tools/filter_markup.h"
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

void PrintError(std::string_view text) {
  std::string line;
  AppendPrintable(text, line);
  fmt::print(stderr, "ksym-symbolize: {}\n", line);
}

Result<std::unique_ptr<DebuginfodClient>> StartClient(
    const SymbolizeOptions& options) {
  if (!options.debuginfod) return nullptr;
  auto client = DebuginfodClient::Start({.max_wait = options.symbol_timeout});
  if (client) return client;
  return Fail(std::move(client.error()).WithContext("--debuginfod"));
}

Status Answer(const SymbolizeOptions& options) {
  if (options.source == SymbolizeOptions::Source::kMarkup) {
    return FilterStandardInput(options.markup);
  }
  const auto client = StartClient(options);
  if (!client) return Fail(client.error());
  const auto source = OpenAddressSource(options, client->get());
  if (!source) return Fail(source.error());
  const auto status = options.addresses.empty()
                          ? AnswerInput(options, **source)
                          : AnswerArguments(options, **source);
  if (*client == nullptr) return status;
  for (const std::string& line : (*client)->DescribeFailures()) {
    PrintError("warning: " + line);
  }
  return status;
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
  const auto status = Answer(parsed.options);
  if (status) return 0;
  PrintError(status.error().message());
  return 1;
}

}  // namespace
}  // namespace ksym

int main(int argc, char** argv) { return ksym::Run(argc, argv); }
