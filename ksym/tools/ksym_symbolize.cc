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
#include "ksym/base/text.h"
#include "ksym/elf/debuginfod_client.h"
#include "ksym/tools/address_source.h"
#include "ksym/tools/filter_markup.h"
#include "ksym/tools/symbolize_options.h"
#include "ksym/tools/symbolize_output.h"

namespace ksym {
namespace {

using Style = SymbolizeOptions::Style;

// Of answers that wait to be written.
constexpr size_t kMaxOutputBytes = size_t{1} << 16;

// One answer as the style has it; JSON without a newline. `address` is nothing
// for a line of the input that is none.
void Append(std::optional<uint64_t> address, const AddressAnswer& answer,
            Style style, std::string& out) {
  switch (style) {
    case Style::kLlvm:
      AppendLlvmStyle(answer, out);
      break;
    case Style::kGnu:
      AppendGnuStyle(answer, out);
      break;
    case Style::kJson:
      AppendJson(address, answer, out);
      break;
  }
}

// What the arguments ask for, in one piece; JSON as one array.
Status AnswerArguments(const SymbolizeOptions& options, AddressSource& source) {
  const bool json = options.style == Style::kJson;
  std::string out;
  AddressAnswer answer;
  for (const uint64_t address : options.addresses) {
    source.Resolve(address, answer);
    if (json) out += out.empty() ? '[' : ',';
    Append(address, answer, options.style, out);
  }
  if (json) out += "]\n";
  return WriteAll(STDOUT_FILENO, out);
}

std::string_view Trimmed(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r\v\f";
  const size_t first = line.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(kSpace) - first + 1);
}

// One answer per line of the input. All that was read is answered before more
// is waited for, so that another program can ask and wait.
Status AnswerInput(const SymbolizeOptions& options, AddressSource& source) {
  Status written;
  std::string out;
  AddressAnswer answer;
  const auto answer_lines = [&](std::string_view lines) {
    while (!lines.empty()) {
      const auto address = ParseHexAddress(Trimmed(TakeField(lines, '\n')));
      if (address) {
        source.Resolve(*address, answer);
      } else {
        answer = {};
        answer.reason = "no-address";
      }
      Append(address, answer, options.style, out);
      if (options.style == Style::kJson) out += '\n';
      if (!lines.empty() && out.size() < kMaxOutputBytes) continue;
      written = WriteAll(STDOUT_FILENO, out);
      out.clear();
      if (!written) return false;
    }
    return true;
  };
  const auto read = ForEachBlockOfLines(STDIN_FILENO, answer_lines);
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

Status AnswerWith(const SymbolizeOptions& options, DebuginfodClient* client) {
  if (options.source == SymbolizeOptions::Source::kMarkup) {
    FilterMarkupOptions markup = options.markup;
    markup.names.places.debuginfod = client;
    return FilterStandardInput(markup);
  }
  const auto source = OpenAddressSource(options, client);
  if (!source) return Fail(source.error());
  return options.addresses.empty() ? AnswerInput(options, **source)
                                   : AnswerArguments(options, **source);
}

Status Answer(const SymbolizeOptions& options) {
  const auto client = StartClient(options);
  if (!client) return Fail(client.error());
  const auto status = AnswerWith(options, client->get());
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
