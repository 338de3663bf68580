// SPDX-License-Identifier: Apache-2.0
// Makes, prints and checks GSYM files; see gen_gsym(1).

#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "gen/gsym_generate.h"
#include "gen/gsym_inspect.h"
#include "gen/gsym_options.h"
#include "ksym/base/printable.h"
#include "ksym/cli/known_stack.h"
#include "ksym/cli/program_signals.h"
#include "ksym/cli/standard_streams.h"

namespace {

using Action = gen::GsymOptions::Action;

// Not by fmt::print(), which throws where nothing can be written.
void PrintError(std::string_view line) {
  std::fputs((ksym::Printable(line) + "\n").c_str(), stderr);
}

void Print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// A line that is written over, on a terminal only.
void ShowProgress(size_t done, size_t all) {
  constexpr size_t kSteps = 100;
  if (done != all && done * kSteps / all == (done - 1) * kSteps / all) return;
  std::fprintf(stderr, "\r%3zu %% of %zu units", done * 100 / all, all);
  if (done == all) std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

ksym::Status Convert(const gen::GsymOptions& options) {
  const bool quiet =
      options.messages == gen::GsymOptions::Messages::kErrorsOnly;
  const bool shows_progress = !quiet && ::isatty(STDERR_FILENO) == 1;
  gen::GenerateHooks hooks;
  hooks.warn = [quiet](std::string_view line) {
    if (!quiet) PrintError(line);
  };
  hooks.progress = [shows_progress](size_t done, size_t all) {
    if (shows_progress) ShowProgress(done, all);
  };
  return gen::GenerateGsymFile(options, hooks);
}

int Finish(const ksym::Status& status) {
  if (!status) {
    PrintError(status.error().message());
    return 1;
  }
  // A full disk may show only now, when the buffer is written.
  if (std::fflush(stdout) != 0) {
    std::perror("gen_gsym: standard output");
    return 1;
  }
  return 0;
}

int Verify(const gen::GsymOptions& options) {
  const auto same = gen::VerifyGsym(options, Print);
  if (!same) return Finish(ksym::Fail(same.error()));
  const int status = Finish({});
  return *same ? status : 1;
}

int Run(const gen::GsymOptions& options) {
  switch (options.action) {
    case Action::kPrint:
      Print(options.text);
      return Finish({});
    case Action::kConvert:
      return Finish(Convert(options));
    case Action::kVerify:
      return Verify(options);
    default:
      return Finish(gen::InspectGsym(options, Print));
  }
}

int Main(int argc, char** argv) {
  ksym::HandleSignalsOfFiles("gen_gsym");
  if (!ksym::ReserveStandardStreams()) return 1;
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const auto options = gen::ParseGsymOptions(arguments);
  if (!options) {
    PrintError("gen_gsym: " + options.error().message() +
               " (--help shows all)");
    return 2;
  }
  return Run(*options);
}

}  // namespace

int main(int argc, char** argv) {
  return ksym::RunOnKnownStack(Main, argc, argv);
}
