// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/systemd_notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "ksym/base/text.h"

namespace profd {
namespace {

std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

ksym::Result<SystemdNotify> SystemdNotify::FromEnvironment() {
  // WATCHDOG_PID says for whom the watchdog is, if it is there.
  const std::string_view pid = Variable("WATCHDOG_PID");
  const bool for_us = pid.empty() || pid == std::to_string(::getpid());
  auto made = To(Variable("NOTIFY_SOCKET"),
                 for_us ? Variable("WATCHDOG_USEC") : std::string_view());
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"}) {
    ::unsetenv(name);
  }
  return made;
}

ksym::Result<SystemdNotify> SystemdNotify::To(std::string_view address,
                                              std::string_view watchdog_usec) {
  SystemdNotify notify;
  if (address.empty()) return notify;
  sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = {}};
  if ((address[0] != '/' && address[0] != '@') ||
      address.size() >= sizeof(name.sun_path)) {
    return ksym::Fail(ksym::ErrorCode::kInvalid,
                      "NOTIFY_SOCKET is neither a path nor an abstract "
                      "address: " +
                          std::string(address));
  }
  std::memcpy(name.sun_path, address.data(), address.size());
  // An abstract address begins with a zero byte (unix(7)); the variable has an
  // @ in its place.
  if (address[0] == '@') name.sun_path[0] = '\0';
  notify.socket_ = ksym::UniqueFd(
      ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!notify.socket_.valid()) return ksym::FailErrno(errno, "socket");
  // An abstract name ends where the length says: zero bytes behind it would be
  // part of it.
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
  if (::connect(notify.socket_.get(), reinterpret_cast<sockaddr*>(&name),
                size) != 0) {
    return ksym::FailErrno(errno, "NOTIFY_SOCKET " + std::string(address));
  }
  const auto period = ksym::ParseUnsigned<uint32_t>(watchdog_usec, 10);
  if (period && *period > 0) {
    notify.watchdog_ = std::chrono::microseconds(*period);
  }
  return notify;
}

void SystemdNotify::Send(std::string_view lines) const {
  if (!enabled()) return;
  // Nothing to do about a failure: the manager will notice.
  (void)::send(socket_.get(), lines.data(), lines.size(), MSG_NOSIGNAL);
}

}  // namespace profd
