// SPDX-License-Identifier: Apache-2.0
#include "ksym/cli/program_signals.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>

namespace ksym {
namespace {

const char* program_name = "";

void Ignore(int /*number*/) {}

void Say(const char* text) {
  (void)!::write(STDERR_FILENO, text, std::strlen(text));
}

// A fault and no signal that somebody sent.
void EndWhenCut(int number, siginfo_t* info, void* /*context*/) {
  if (info->si_code <= 0) {
    ::signal(number, SIG_DFL);
    ::raise(number);
    return;
  }
  Say(program_name);
  Say(": a file became shorter while it was being read\n");
  // All that is called here is safe in a handler (signal-safety(7)).
  ::_exit(1);
}

}  // namespace

void HandleSignalsOfFiles(const char* program) {
  program_name = program;
  struct sigaction action = {};
  action.sa_flags = SA_RESTART;
  // A handler and not SIG_IGN, which programs that are executed would keep
  // (execve(2)).
  action.sa_handler = Ignore;
  ::sigaction(SIGXFSZ, &action, nullptr);
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = EndWhenCut;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace ksym
