// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "daemon/base/freed_memory.h"
#include "daemon/oneshot/dump_command.h"
#include "daemon/oneshot/file_commands.h"
#include "daemon/oneshot/history_command.h"
#include "daemon/oneshot/messages.h"
#include "daemon/oneshot/one_shot.h"
#include "daemon/oneshot/options.h"
#include "daemon/oneshot/top_command.h"
#include "daemon/oneshot/ui_command.h"
#include "ksym/cli/known_stack.h"
#include "ksym/cli/program_signals.h"
#include "ksym/cli/standard_streams.h"

namespace {

int Main(int argc, char** argv) {
  ksym::HandleSignalsOfFiles("ksym-profile");
  profd::ReturnFreedMemory();
  const auto reserved = ksym::ReserveStandardStreams();
  if (!reserved) return profd::kExitFailure;
  if (const auto status = profd::RunFileCommand(argc, argv)) return *status;
  if (const auto status = profd::RunDumpCommand(argc, argv)) return *status;
  if (const auto status = profd::RunHistoryCommand(argc, argv)) return *status;
  if (const auto status = profd::RunTopCommand(argc, argv)) return *status;
  if (const auto status = profd::RunUiCommand(argc, argv)) return *status;
  profd::ParsedCommandLine parsed = profd::ParseCommandLine(argc, argv);
  if (parsed.options) return profd::RunOneShot(std::move(*parsed.options));
  if (parsed.exit_status == 0) return profd::PrintToStdout(parsed.output_text);
  profd::PrintMessage(parsed.error_text);
  return parsed.exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  return ksym::RunOnKnownStack(Main, argc, argv);
}
