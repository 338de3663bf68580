// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/end_with_parent.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

namespace ksym {

void EndWithParent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A process whose parent is gone gets another one.
  if (::getppid() != parent) ::_exit(1);
}

}  // namespace ksym
