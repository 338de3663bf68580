#include <cstdio>

#include "daemon/oneshot/one_shot.h"
#include "daemon/oneshot/options.h"

int main(int argc, char** argv) {
  profd::ParsedCommandLine parsed = profd::ParseCommandLine(argc, argv);
  std::fputs(parsed.output_text.c_str(), stdout);
  std::fputs(parsed.error_text.c_str(), stderr);
  if (!parsed.options) return parsed.exit_status;
  return profd::RunOneShot(std::move(*parsed.options));
}
