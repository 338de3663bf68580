// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "ksym/process/file_opener.h"

namespace profd {

// The body of FileChild's child: for each request (file_messages.h) it forks a
// process that opens the file with `opener`, copies it if that is wanted, and
// answers by itself. The child touches no file, so it can always be ended; a
// worker that hangs in the kernel holds up nobody else. Returns never; ends
// with the socket's other end, and its workers with it where the kernel lets
// them. `parent` is who forked. `max_workers` work at once, the requests beyond
// are refused (EAGAIN).
[[noreturn]] void ServeFileRequests(int socket, pid_t parent,
                                    size_t max_workers,
                                    ksym::FileOpener& opener);

}  // namespace profd
