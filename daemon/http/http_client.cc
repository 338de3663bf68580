// SPDX-License-Identifier: Apache-2.0
#include "daemon/http/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

namespace profd {
namespace {

constexpr size_t kNetworkBytes = 8;  // of an address of IPv6

std::string UserOf(int fd) {
  ucred user = {};
  socklen_t size = sizeof(user);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size) != 0) return {};
  return std::to_string(user.uid);
}

std::string AddressOf(int fd) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof(peer);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) {
    return {};
  }
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return text.data();
  }
  in6_addr address = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
  // An address of IPv4 at a socket of IPv6 is whole in the last bytes.
  if (IN6_IS_ADDR_V4MAPPED(&address) == 0) {
    std::fill_n(address.s6_addr + kNetworkBytes, kNetworkBytes, uint8_t{0});
  }
  ::inet_ntop(AF_INET6, &address, text.data(), text.size());
  return text.data();
}

}  // namespace

HttpClient ClientOf(int fd, HttpWay way) {
  return {.way = way,
          .name = way == HttpWay::kUnixSocket ? UserOf(fd) : AddressOf(fd)};
}

}  // namespace profd
