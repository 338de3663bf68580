// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace profd {

// By which way a client came: clients of the network have bounds of their own,
// so that they never keep out those who may use the Unix socket.
enum class HttpWay : uint8_t { kUnixSocket, kNetwork };

// The client that asks. One client may have many connections; what it may take
// is bounded for all of them together.
struct HttpClient {
  HttpWay way = HttpWay::kUnixSocket;
  // The user's number or the address; of IPv6 the network, whose owner has all
  // the addresses in it. Programs on this machine are one client if they come
  // by its loopback.
  std::string name = {};

  friend auto operator<=>(const HttpClient&, const HttpClient&) = default;
};

// The client that has connected. Cost: a system call.
HttpClient ClientOf(int fd, HttpWay way);

}  // namespace profd
