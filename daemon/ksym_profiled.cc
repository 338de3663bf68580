// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/freed_memory.h"
#include "daemon/service/log.h"
#include "daemon/service/service.h"
#include "daemon/service/service_options.h"
#include "ksym/cli/command_line.h"
#include "ksym/cli/known_stack.h"
#include "ksym/cli/program_signals.h"
#include "ksym/cli/standard_streams.h"

namespace {

int Main(int argc, char** argv) {
  ksym::HandleSignalsOfFiles("ksym-profiled");
  profd::ReturnFreedMemory();
  const auto reserved = ksym::ReserveStandardStreams();
  if (!reserved) return profd::kServiceFailure;
  const auto parsed = profd::ParseServiceCommandLine(argc, argv);
  if (parsed.options) return profd::RunService(*parsed.options);
  const ksym::CommandLineEnd& end = parsed.end;
  if (end.exit_status == 0) {
    return ksym::PrintOutput(end.output_text) ? profd::kServiceOk
                                              : profd::kServiceFailure;
  }
  profd::StartLog(profd::LogLevel::kInfo);
  profd::Log(profd::LogLevel::kError, end.error_text);
  return end.exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  return ksym::RunOnKnownStack(Main, argc, argv);
}
