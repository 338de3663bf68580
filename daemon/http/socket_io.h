// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>

namespace profd {

// Waits for poll(2)'s events. false: the deadline passed, or the wait failed.
inline bool WaitForSocket(int fd, short events,
                          std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0) return false;
  pollfd entry = {.fd = fd, .events = events, .revents = 0};
  return ::poll(&entry, 1, static_cast<int>(left.count())) > 0;
}

// Before a socket on which something was answered is closed: what the client
// has sent and nobody read would make close() cut the answer off.
inline void EndAnswer(int fd) {
  constexpr int kMaxReads = 64;
  ::shutdown(fd, SHUT_WR);
  std::array<char, 4096> rest;
  for (int i = 0; i < kMaxReads; ++i) {
    if (::recv(fd, rest.data(), rest.size(), MSG_DONTWAIT) <= 0) return;
  }
}

}  // namespace profd
