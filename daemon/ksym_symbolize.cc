// SPDX-License-Identifier: Apache-2.0
// Names addresses; see ksym-symbolize(1).

#include "daemon/output/format_table.h"
#include "daemon/symbolize/name_profile.h"
#include "ksym/cli/known_stack.h"
#include "ksym/cli/standard_streams.h"
#include "ksym/tools/symbolize_program.h"

namespace {

int Main(int argc, char** argv) {
  if (!ksym::ReserveStandardStreams()) return 1;
  return ksym::RunSymbolizeProgram(
      argc, argv,
      {.formats = profd::FormatChoices(), .run = profd::NameRawProfile});
}

}  // namespace

int main(int argc, char** argv) {
  return ksym::RunOnKnownStack(Main, argc, argv);
}
