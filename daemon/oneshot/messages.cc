#include "daemon/oneshot/messages.h"

#include <cstdio>
#include <string>

#include "daemon/output/safe_name.h"
#include "ksym/base/text.h"

namespace profd {

void PrintMessage(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    lines += "ksym-profile: ";
    AppendPrintable(ksym::TakeField(text, '\n'), lines);
    lines += '\n';
  }
  std::fputs(lines.c_str(), stderr);
}

}  // namespace profd
