// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "daemon/base/freed_memory.h"
#include "daemon/service/log.h"
#include "daemon/service/service.h"
#include "daemon/service/service_options.h"
#include "ksym/cli/known_stack.h"
#include "ksym/cli/program_signals.h"
#include "ksym/cli/standard_streams.h"

namespace {

// For --help and --version, which are data.
int PrintToStdout(const std::string& text) {
  const bool printed =
      std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return printed ? profd::kServiceOk : profd::kServiceFailure;
}

int Main(int argc, char** argv) {
  ksym::HandleSignalsOfFiles("ksym-profiled");
  profd::ReturnFreedMemory();
  const auto reserved = ksym::ReserveStandardStreams();
  if (!reserved) return profd::kServiceFailure;
  const auto parsed = profd::ParseServiceCommandLine(argc, argv);
  if (parsed.options) return profd::RunService(*parsed.options);
  if (parsed.exit_status == 0) return PrintToStdout(parsed.output_text);
  profd::StartLog(profd::LogLevel::kInfo);
  profd::Log(profd::LogLevel::kError, parsed.error_text);
  return parsed.exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  return ksym::RunOnKnownStack(Main, argc, argv);
}
