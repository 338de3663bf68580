// SPDX-License-Identifier: Apache-2.0
// Makes and reads tables of kernel symbols; see gen_ksym(1).

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "gen/ksym_generate.h"
#include "gen/ksym_inspect.h"
#include "gen/ksym_options.h"
#include "ksym/base/printable.h"
#include "ksym/cli/known_stack.h"
#include "ksym/cli/program_signals.h"
#include "ksym/cli/standard_streams.h"

namespace {

int Main(int argc, char** argv) {
  ksym::HandleSignalsOfFiles("gen_ksym");
  if (!ksym::ReserveStandardStreams()) return 1;
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const auto options = gen::ParseKsymOptions(arguments);
  if (!options) {
    // Not by fmt::print(), which throws where nothing can be written.
    const std::string why = ksym::Printable(options.error().message());
    std::fputs(("gen_ksym: " + why + " (--help shows all)\n").c_str(), stderr);
    return 2;
  }
  using Action = gen::KsymOptions::Action;
  if (options->action == Action::kPrint) {
    std::fwrite(options->text.data(), 1, options->text.size(), stdout);
    return std::fflush(stdout) == 0 ? 0 : 1;
  }
  const auto status =
      options->action == Action::kGenerate
          ? gen::GenerateKsymFile(*options)
          : gen::InspectKsym(*options, [](std::string_view text) {
              std::fwrite(text.data(), 1, text.size(), stdout);
            });
  if (!status) {
    std::fputs((status.error().message() + "\n").c_str(), stderr);
    return 1;
  }
  if (std::fflush(stdout) != 0) {
    std::perror("gen_ksym: standard output");
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return ksym::RunOnKnownStack(Main, argc, argv);
}
