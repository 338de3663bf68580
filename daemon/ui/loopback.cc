// SPDX-License-Identifier: Apache-2.0
#include "daemon/ui/loopback.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace profd {
namespace {

constexpr int kBacklog = 16;

template <typename Address>
ksym::Result<ksym::UniqueFd> ListenAt(const Address& address, int family) {
  ksym::UniqueFd fd(
      ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  if (!fd.valid() ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) !=
          0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
             sizeof(address)) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return ksym::FailErrno(errno, "the loopback");
  }
  return fd;
}

ksym::Result<ksym::UniqueFd> ListenAtV4(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ListenAt(address, AF_INET);
}

ksym::Result<ksym::UniqueFd> ListenAtV6(uint16_t port) {
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = in6addr_loopback;
  return ListenAt(address, AF_INET6);
}

// Both families have the port at the same place.
uint16_t PortOf(int fd) {
  sockaddr_in6 address = {};
  socklen_t size = sizeof(address);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin6_port);
}

}  // namespace

ksym::Result<LoopbackListeners> ListenOnLoopback(uint16_t port) {
  LoopbackListeners listeners;
  auto v4 = ListenAtV4(port);
  if (v4) {
    port = PortOf(v4->get());
    listeners.host = fmt::format("127.0.0.1:{}", port);
    listeners.fds.push_back(std::move(*v4));
  }
  // Browsers may try it first for "localhost". A program that has that port
  // already there is not reached by our address.
  auto v6 = ListenAtV6(port);
  if (v6) {
    if (listeners.host.empty()) {
      listeners.host = fmt::format("[::1]:{}", PortOf(v6->get()));
    }
    listeners.fds.push_back(std::move(*v6));
  }
  if (listeners.fds.empty()) return ksym::Fail(std::move(v4.error()));
  return listeners;
}

}  // namespace profd
