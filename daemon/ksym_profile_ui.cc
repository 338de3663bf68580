// SPDX-License-Identifier: Apache-2.0
// What `ksym-profile ui` becomes, with its arguments.
#include "daemon/oneshot/messages.h"
#include "daemon/oneshot/ui_command.h"
#include "daemon/ui/show_page.h"
#include "ksym/cli/known_stack.h"
#include "ksym/cli/program_signals.h"

namespace {

int Main(int argc, char** argv) {
  ksym::HandleSignalsOfFiles("ksym-profile");
  const auto arguments = profd::ParseUiCommand(argc, argv);
  if (!arguments) return arguments.error();
  if (const auto shown = profd::ShowPage(*arguments); !shown) {
    return profd::ReportFailure(shown.error());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return ksym::RunOnKnownStack(Main, argc, argv);
}
