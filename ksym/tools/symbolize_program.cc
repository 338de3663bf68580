// SPDX-License-Identifier: Apache-2.0
#include "ksym/tools/symbolize_program.h"

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
#include "ksym/cli/program_signals.h"
#include "ksym/fetch/debuginfod_client.h"
#include "ksym/tools/address_source.h"
#include "ksym/tools/answer_lines.h"
#include "ksym/tools/filter_markup.h"
#include "ksym/tools/symbolize_options.h"

namespace ksym {
namespace {

using Style = SymbolizeOptions::Style;

// What the arguments ask for, in one piece; JSON as one array.
Status AnswerArguments(const SymbolizeOptions& options, AddressSource& source) {
  const bool json = options.style == Style::kJson;
  std::string out;
  AddressAnswer answer;
  const auto prepared = source.Prepare(options.addresses);
  if (!prepared) return prepared;
  for (const uint64_t address : options.addresses) {
    source.Resolve(address, answer);
    if (json) out += out.empty() ? '[' : ',';
    AppendAnswer(address, answer, options.style, out);
  }
  if (json) out += "]\n";
  return WriteAll(STDOUT_FILENO, out);
}

// One answer per line of the input. All that was read is answered before more
// is waited for, so that another program can ask and wait.
Status AnswerInput(const SymbolizeOptions& options, AddressSource& source) {
  LineAnswerer answerer(source, options.style, STDOUT_FILENO);
  Status written;
  const auto read =
      ForEachBlockOfLines(STDIN_FILENO, [&](std::string_view lines) {
        written = answerer.Answer(lines);
        return written.has_value();
      });
  if (!written) return written;
  return read;
}

// Not by fmt::print(), which throws where nothing can be written.
void PrintError(std::string_view text) {
  std::fputs(("ksym-symbolize: " + Printable(text) + "\n").c_str(), stderr);
}

Result<std::unique_ptr<DebuginfodClient>> StartClient(
    const SymbolizeOptions& options) {
  if (!options.debuginfod) return nullptr;
  auto client = DebuginfodClient::Start({.max_wait = options.symbol_timeout});
  if (client) return client;
  return Fail(std::move(client.error()).WithContext("--debuginfod"));
}

Status AnswerWith(const SymbolizeOptions& options, DebuginfodClient* client,
                  const ProfileNaming& profiles) {
  if (options.source == SymbolizeOptions::Source::kProfile) {
    return profiles.run(options, client);
  }
  if (options.source == SymbolizeOptions::Source::kMarkup) {
    FilterMarkupOptions markup = options.markup;
    markup.names.places.debuginfod = client;
    return FilterStandardInput(markup);
  }
  SymbolizeOptions mapping = options;
  // This program may end where a file is truncated while it is read; a library
  // or a service may not.
  mapping.reading = SymbolizeOptions::Reading::kMap;
  const auto source = OpenAddressSource(mapping, client);
  if (!source) return Fail(source.error());
  return options.addresses.empty() ? AnswerInput(options, **source)
                                   : AnswerArguments(options, **source);
}

Status Answer(const SymbolizeOptions& options, const ProfileNaming& profiles) {
  const auto client = StartClient(options);
  if (!client) return Fail(client.error());
  const auto status = AnswerWith(options, client->get(), profiles);
  if (*client == nullptr) return status;
  for (const std::string& line : (*client)->DescribeFailures()) {
    PrintError("warning: " + line);
  }
  return status;
}

}  // namespace

int RunSymbolizeProgram(int argc, char** argv, const ProfileNaming& profiles) {
  HandleSignalsOfFiles("ksym-symbolize");
  const auto parsed = ParseSymbolizeOptions(argc, argv, profiles.formats);
  if (!parsed.runs()) {
    if (!parsed.error_text.empty()) {
      std::fputs(("ksym-symbolize: " + parsed.error_text + "\n").c_str(),
                 stderr);
    }
    const auto written = WriteAll(STDOUT_FILENO, parsed.output_text);
    return written ? parsed.exit_status : 1;
  }
  const auto status = Answer(parsed.options, profiles);
  if (status) return 0;
  PrintError(status.error().message());
  return 1;
}

}  // namespace ksym
