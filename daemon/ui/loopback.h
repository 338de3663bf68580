// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// Sockets that listen at one port of this machine's loopback: of IPv4, of IPv6,
// or of both, as there are.
struct LoopbackListeners {
  std::vector<ksym::UniqueFd> fds;  // non-blocking; at least one
  std::string host;                 // "127.0.0.1:4040" or "[::1]:4040"
};

// `port`: 0 for one that is free. Fails where neither address can be had.
ksym::Result<LoopbackListeners> ListenOnLoopback(uint16_t port);

}  // namespace profd
