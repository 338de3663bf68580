// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/listen_address.h"

#include <arpa/inet.h>
#include <grp.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "ksym/base/text.h"

namespace profd {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr int kBacklog = 64;
constexpr uint32_t kLoopbackNet = 127;

std::unexpected<ksym::Error> Refuse(std::string_view text) {
  return ksym::Fail(ksym::ErrorCode::kInvalid,
                    "\"" + std::string(text) +
                        "\" is neither unix:/PATH (at most 107 bytes) nor "
                        "ADDRESS:PORT, with numbers");
}

sockaddr_un UnixName(const std::string& path) {
  sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = {}};
  std::memcpy(name.sun_path, path.data(), path.size());
  return name;
}

// A socket file that nobody listens on is what a killed service has left.
ksym::Status RemoveStale(const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode)) {
    return ksym::FailErrno(EEXIST, path + ": is no socket");
  }
  const ksym::UniqueFd probe(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un name = UnixName(path);
  const bool alive =
      ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&name),
                sizeof(name)) == 0 ||
      // Any other failure, such as a full queue (EAGAIN), is of one that
      // listens.
      errno != ECONNREFUSED;
  if (alive) return ksym::FailErrno(EADDRINUSE, path);
  if (::unlink(path.c_str()) != 0) return ksym::FailErrno(errno, path);
  return {};
}

ksym::Result<ksym::UniqueFd> ListenOnPath(const std::string& path) {
  std::error_code ignored;  // bind() tells
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(),
                                      ignored);
  auto removed = RemoveStale(path);
  if (!removed) return ksym::Fail(std::move(removed.error()));
  ksym::UniqueFd fd(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un name = UnixName(path);
  // The mode of the socket before it has a name is that of its file.
  if (!fd.valid() || ::fchmod(fd.get(), 0660) != 0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name),
             sizeof(name)) != 0) {
    return ksym::FailErrno(errno, path);
  }
  // Started by root itself it is still for the group.
  if (const group* ksym_group = ::getgrnam("ksym"); ksym_group != nullptr) {
    (void)!::chown(path.c_str(), static_cast<uid_t>(-1), ksym_group->gr_gid);
  }
  // The umask took from the mode at bind(). Nobody connects before listen(), so
  // all is in place by then.
  if (::chmod(path.c_str(), 0660) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    return ksym::FailErrno(errno, path);
  }
  return fd;
}

}  // namespace

bool ListenAddress::is_loopback() const {
  if (!path.empty()) return true;
  if (tcp.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(tcp);
    return ntohl(v4.sin_addr.s_addr) >> 24 == kLoopbackNet;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(tcp);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

ksym::Result<ListenAddress> ParseListenAddress(std::string_view text) {
  ListenAddress address;
  if (text.starts_with(kUnixPrefix)) {
    address.path = text.substr(kUnixPrefix.size());
    const bool fits = address.path.size() < sizeof(sockaddr_un::sun_path);
    if (!address.path.starts_with('/') || !fits ||
        address.path.contains('\0')) {
      return Refuse(text);
    }
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Refuse(text);
  const auto port = ksym::ParseUnsigned<uint16_t>(text.substr(colon + 1), 10);
  std::string host(text.substr(0, colon));
  if (!port || *port == 0) return Refuse(text);
  if (host.empty()) host = "127.0.0.1";
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.tcp);
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(*port);
    address.tcp_size = sizeof(v4);
    return address;
  }
  if (!host.starts_with('[') || !host.ends_with(']')) return Refuse(text);
  host = host.substr(1, host.size() - 2);
  address.tcp = {};
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.tcp);
  if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) {
    return Refuse(text);
  }
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(*port);
  address.tcp_size = sizeof(v6);
  return address;
}

ksym::Result<ksym::UniqueFd> Listen(const ListenAddress& address) {
  if (!address.path.empty()) return ListenOnPath(address.path);
  ksym::UniqueFd fd(::socket(address.tcp.ss_family,
                             SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // A restart need not wait for connections of before that end in TIME_WAIT
  // (socket(7)).
  const int yes = 1;
  if (!fd.valid() ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) !=
          0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.tcp),
             address.tcp_size) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return ksym::FailErrno(errno, "http.listen");
  }
  return fd;
}

}  // namespace profd
