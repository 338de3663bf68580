// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// Where the HTTP server listens: "unix:/path", "127.0.0.1:4040", "[::1]:4040",
// or ":4040", which is the loopback of IPv4. Addresses are numbers: a name
// could mean another one tomorrow.
struct ListenAddress {
  std::string path;  // empty: TCP
  sockaddr_storage tcp = {};
  socklen_t tcp_size = 0;

  bool is_loopback() const;
};

// kInvalid says what it may be.
ksym::Result<ListenAddress> ParseListenAddress(std::string_view text);

// A listening, non-blocking socket. A Unix socket has mode 0660 from the
// beginning, and takes the place of one that nobody listens on any more; its
// directory is made if it is not there.
ksym::Result<ksym::UniqueFd> Listen(const ListenAddress& address);

}  // namespace profd
