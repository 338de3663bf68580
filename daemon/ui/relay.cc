// SPDX-License-Identifier: Apache-2.0
#include "daemon/ui/relay.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "ksym/base/text.h"
#include "ksym/base/unique_fd.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;
using ksym::ErrorCode;

constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr size_t kStatusAt = sizeof("HTTP/1.1 ") - 1;
constexpr size_t kStatusDigits = 3;

ksym::Error Unreachable(const std::string& path, int error) {
  const std::string why =
      error == EACCES || error == EPERM
          ? std::string("it is for members of the group ksym")
      : error == ENOENT || error == ECONNREFUSED
          ? std::string("ksym-profiled is not running")
          : std::string(std::strerror(error));
  return {ErrorCode::kIo,
          fmt::format("the service does not answer at {}: {}", path, why)};
}

ksym::Result<ksym::UniqueFd> Connect(const std::string& path) {
  sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof(name.sun_path)) {
    return ksym::Fail(Unreachable(path, ENAMETOOLONG));
  }
  std::memcpy(name.sun_path, path.data(), path.size());
  ksym::UniqueFd fd(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // One that does not block: a service whose queue is full is busy, not gone.
  if (!fd.valid() || ::connect(fd.get(), reinterpret_cast<sockaddr*>(&name),
                               sizeof(name)) != 0) {
    return ksym::Fail(Unreachable(path, errno));
  }
  return fd;
}

// The way of one answer.
class Channel {
 public:
  Channel(const RelayedRequest& request, ksym::UniqueFd service)
      : request_(request), service_(std::move(service)) {}

  // The request is far smaller than what a socket takes.
  bool Ask() const {
    const std::string head = fmt::format(
        "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        request_.target);
    return ::send(service_.get(), head.data(), head.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(head.size());
  }

  enum class Event : uint8_t { kReady, kOver, kLate };

  // Waits until the service has said something.
  Event WaitForService(Clock::time_point deadline) const {
    return Wait({.fd = service_.get(), .events = POLLIN, .revents = 0},
                deadline);
  }

  // Bytes of the answer; 0: it ended, or broke off.
  size_t Read(std::array<char, kBufferBytes>& buffer) const {
    for (;;) {
      const ssize_t size =
          ::recv(service_.get(), buffer.data(), buffer.size(), 0);
      if (size >= 0) return static_cast<size_t>(size);
      if (errno != EINTR) return 0;
    }
  }

  // Whether the client took all.
  bool Write(std::string_view bytes, Clock::time_point deadline) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(request_.client, bytes.data(), bytes.size(),
                                  MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        bytes.remove_prefix(static_cast<size_t>(sent));
      } else if (sent == 0 || (errno != EAGAIN && errno != EINTR) ||
                 Wait({.fd = request_.client, .events = POLLOUT, .revents = 0},
                      deadline) != Event::kReady) {
        return false;
      }
    }
    return true;
  }

 private:
  Event Wait(pollfd wanted, Clock::time_point deadline) const {
    std::array<pollfd, 3> entries = {
        {wanted,
         {.fd = request_.stop, .events = POLLIN, .revents = 0},
         {.fd = request_.client, .events = POLLRDHUP, .revents = 0}}};
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0) return Event::kLate;
      const int count = ::poll(entries.data(), entries.size(),
                               static_cast<int>(left.count()));
      if (count == 0 || (count < 0 && errno == EINTR)) continue;
      if (count < 0 || entries[1].revents != 0 || entries[2].revents != 0) {
        return Event::kOver;
      }
      return Event::kReady;
    }
  }

  const RelayedRequest& request_;
  ksym::UniqueFd service_;
};

}  // namespace

ksym::Status Relay(const RelayedRequest& request) {
  auto service = Connect(request.socket);
  if (!service) return ksym::Fail(std::move(service.error()));
  const Channel channel(request, std::move(*service));
  if (!channel.Ask()) return ksym::Fail(Unreachable(request.socket, EPIPE));
  const Clock::time_point begin_by = Clock::now() + kRelayBeginsWithin;
  switch (channel.WaitForService(begin_by)) {
    case Channel::Event::kOver:
      return {};
    case Channel::Event::kLate:
      return ksym::Fail(ErrorCode::kIo,
                        "the service did not answer within a minute");
    case Channel::Event::kReady:
      break;
  }
  std::array<char, kBufferBytes> buffer;
  size_t size = channel.Read(buffer);
  if (size == 0) {
    return ksym::Fail(ErrorCode::kIo,
                      "the service ended before it had answered");
  }
  // From here on the client has a part of the answer: what goes wrong can only
  // cut it off, which its Content-Length tells.
  const Clock::time_point end_by = Clock::now() + kRelayEndsWithin;
  while (size > 0 && channel.Write({buffer.data(), size}, end_by) &&
         channel.WaitForService(end_by) == Channel::Event::kReady) {
    size = channel.Read(buffer);
  }
  return {};
}

ksym::Result<int> AskStatus(const std::string& socket, std::string_view path) {
  auto service = Connect(socket);
  if (!service) return ksym::Fail(std::move(service.error()));
  const RelayedRequest request = {.socket = socket,
                                  .target = std::string(path)};
  const Channel channel(request, std::move(*service));
  std::array<char, kBufferBytes> buffer;
  size_t size = 0;
  if (channel.Ask() &&
      channel.WaitForService(Clock::now() + kRelayBeginsWithin) ==
          Channel::Event::kReady) {
    size = channel.Read(buffer);
  }
  const std::string_view answer(buffer.data(), size);
  const auto status = ksym::ParseUnsigned<uint16_t>(
      answer.substr(std::min(kStatusAt, answer.size()), kStatusDigits), 10);
  if (!answer.starts_with("HTTP/1.") || !status) {
    return ksym::Fail(ErrorCode::kIo, socket + ": no service answers there");
  }
  return *status;
}

}  // namespace profd
