// Makes and reads tables of kernel symbols; see gen_ksym(1).

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "gen/ksym_generate.h"
#include "gen/ksym_inspect.h"
#include "gen/ksym_options.h"
#include "ksym/base/printable.h"
#include "ksym/cli/program_signals.h"

int main(int argc, char** argv) {
  ksym::HandleSignalsOfFiles("gen_ksym");
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const auto options = gen::ParseKsymOptions(arguments);
  if (!options) {
    std::string line;
    ksym::AppendPrintable(options.error().message(), line);
    fmt::print(stderr, "gen_ksym: {} (--help shows all)\n", line);
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
    fmt::print(stderr, "{}\n", status.error().message());
    return 1;
  }
  if (std::fflush(stdout) != 0) {
    std::perror("gen_ksym: standard output");
    return 1;
  }
  return 0;
}
