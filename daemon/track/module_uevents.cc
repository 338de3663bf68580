// SPDX-License-Identifier: Apache-2.0
#include "daemon/track/module_uevents.h"

#include <linux/netlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace profd {
namespace {

// Messages of the kernel itself; udev sends its own to group 2.
constexpr unsigned kKernelGroup = 1;

}  // namespace

bool IsModuleUevent(std::string_view message) {
  return message.starts_with("add@/module/") ||
         message.starts_with("remove@/module/");
}

ksym::Result<ModuleUevents> ModuleUevents::Open() {
  ksym::UniqueFd fd(::socket(AF_NETLINK,
                             SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                             NETLINK_KOBJECT_UEVENT));
  if (!fd.valid()) return ksym::FailErrno(errno, "uevent socket");
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelGroup;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
             sizeof(address)) != 0) {
    return ksym::FailErrno(errno, "uevent socket");
  }
  return ModuleUevents(std::move(fd));
}

bool ModuleUevents::ReadChanged() {
  bool changed = false;
  for (;;) {
    std::array<char, 8192> buffer;
    sockaddr_nl sender = {};
    socklen_t sender_size = sizeof(sender);
    const ssize_t size =
        ::recvfrom(fd_.get(), buffer.data(), buffer.size(), 0,
                   reinterpret_cast<sockaddr*>(&sender), &sender_size);
    if (size < 0 && errno == EINTR) continue;
    // Messages that did not fit the socket's buffer may have been ours.
    if (size < 0 && errno == ENOBUFS) {
      changed = true;
      continue;
    }
    if (size < 0) return changed;
    // Port 0 is the kernel; a process may send to the group as well.
    if (sender.nl_pid != 0) continue;
    changed |= IsModuleUevent({buffer.data(), static_cast<size_t>(size)});
  }
}

}  // namespace profd
