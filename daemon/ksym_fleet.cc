// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "daemon/base/freed_memory.h"
#include "daemon/fleet/fleet_options.h"
#include "daemon/fleet/fleet_program.h"
#include "ksym/cli/command_line.h"
#include "ksym/cli/known_stack.h"
#include "ksym/cli/program_signals.h"
#include "ksym/cli/standard_streams.h"

namespace {

int Main(int argc, char** argv) {
  ksym::HandleSignalsOfFiles("ksym-fleet");
  profd::ReturnFreedMemory();
  const auto reserved = ksym::ReserveStandardStreams();
  if (!reserved) return 1;
  const auto parsed = profd::fleet::ParseFleetCommandLine(argc, argv);
  if (parsed.options) return profd::fleet::RunFleet(*parsed.options);
  const ksym::CommandLineEnd& end = parsed.end;
  if (end.exit_status != 0) {
    (void)std::fprintf(stderr, "ksym-fleet: %s\n", end.error_text.c_str());
    return end.exit_status;
  }
  return ksym::PrintOutput(end.output_text) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return ksym::RunOnKnownStack(Main, argc, argv);
}
