// SPDX-License-Identifier: Apache-2.0
#include "ksym/cli/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace ksym {

Status ReserveStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one, as those below are open by now.
    // Read-only for stdout, so that a report written there is an error.
    const int flags = fd == STDERR_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", flags) != fd) {
      return FailErrno(errno, "/dev/null");
    }
  }
  return {};
}

}  // namespace ksym
