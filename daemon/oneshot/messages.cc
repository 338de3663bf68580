// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/messages.h"

#include <cstdio>
#include <string>

#include "daemon/oneshot/one_shot.h"
#include "ksym/base/printable.h"
#include "ksym/base/text.h"

namespace profd {

void PrintMessage(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    lines += "ksym-profile: ";
    ksym::AppendPrintable(ksym::TakeField(text, '\n'), lines);
    lines += '\n';
  }
  // In one call, so that other programs' lines at the terminal come between
  // messages only.
  std::fputs(lines.c_str(), stderr);
}

std::string UsageLine(std::string_view why) {
  return ksym::Printable(why) + " (see --help)";
}

int ReportUsage(std::string_view why) {
  PrintMessage(UsageLine(why));
  return kExitUsage;
}

int ReportFailure(const ksym::Error& error) {
  PrintMessage(error.message());
  return kExitFailure;
}

int PrintToStdout(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) {
    return kExitOk;
  }
  PrintMessage("stdout cannot be written");
  return kExitFailure;
}

}  // namespace profd
