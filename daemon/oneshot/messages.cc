// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/messages.h"

#include <cstdio>
#include <string>

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
  std::fputs(lines.c_str(), stderr);
}

}  // namespace profd
