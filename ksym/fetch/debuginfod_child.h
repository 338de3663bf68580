// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace ksym {

// What a message from DebuginfodClient's child begins with; a text follows.
// The first message says that it is ready, each other one answers a build-id.
// Messages keep their boundaries (SOCK_SEQPACKET).
struct DebuginfodAnswer {
  // 0: the text is the path of a file; else of the errno kind, and the text is
  // the URL that was asked last, or an explanation when it is not ready.
  int32_t error = 0;
};
inline constexpr size_t kMaxDebuginfodMessage = 8192;

// The body of the child, which `parent` forked: answers what comes through the
// socket until it is closed. Never returns.
[[noreturn]] void ServeDebuginfodRequests(int socket, pid_t parent,
                                          uint64_t max_file_bytes);

}  // namespace ksym
