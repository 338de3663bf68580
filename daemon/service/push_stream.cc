// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/push_stream.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string_view>

#include "daemon/http/socket_io.h"

namespace profd {

PushStream::PushStream(int fd, SSL* tls, const Bounds& bounds)
    : fd_(fd), tls_(tls), bounds_(bounds) {
  (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

ssize_t PushStream::read(char* to, size_t size) {
  if (begin_ == end_ && !Fill()) return -1;
  const size_t taken = std::min(size, end_ - begin_);
  std::copy_n(buffer_.data() + begin_, taken, to);
  begin_ += taken;
  return static_cast<ssize_t>(taken);
}

ssize_t PushStream::write(const char* from, size_t size) {
  for (;;) {
    const ssize_t written = WriteSome(from, size);
    if (written > 0 || !WaitToRetry(written, POLLOUT)) return written;
  }
}

// httplib matches the first line with a stack as deep as it is long.
bool PushStream::Fill() {
  if (received_ >= bounds_.bytes ||
      (!line_ended_ && received_ >= bounds_.line_bytes)) {
    return false;
  }
  ssize_t size = 0;
  do {
    size = ReadSome();
  } while (size <= 0 && WaitToRetry(size, POLLIN));
  if (size <= 0) return false;
  begin_ = 0;
  end_ = static_cast<size_t>(size);
  received_ += end_;
  line_ended_ =
      line_ended_ || std::string_view(buffer_.data(), end_).contains('\n');
  return true;
}

ssize_t PushStream::ReadSome() {
  if (tls_ == nullptr) return ::recv(fd_, buffer_.data(), buffer_.size(), 0);
  // SSL_get_error(3) reads the thread's queue of errors, which must be empty
  // before each operation.
  ::ERR_clear_error();
  return ::SSL_read(tls_, buffer_.data(), static_cast<int>(buffer_.size()));
}

ssize_t PushStream::WriteSome(const char* from, size_t size) {
  if (tls_ == nullptr) return ::send(fd_, from, size, MSG_NOSIGNAL);
  constexpr size_t kMax = std::numeric_limits<int>::max();
  ::ERR_clear_error();
  return ::SSL_write(tls_, from, static_cast<int>(std::min(size, kMax)));
}

bool PushStream::Wait(short events) const {
  constexpr std::chrono::milliseconds kAskEvery(100);
  if (!bounds_.is_over) return WaitForSocket(fd_, events, bounds_.deadline);
  while (!bounds_.is_over()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= bounds_.deadline) break;
    const auto until = std::min(bounds_.deadline, now + kAskEvery);
    if (WaitForSocket(fd_, events, until)) return true;
  }
  return false;
}

bool PushStream::WaitToRetry(ssize_t result, short events) {
  if (tls_ == nullptr) {
    return result < 0 && (errno == EAGAIN || errno == EINTR) && Wait(events);
  }
  // TLS may have to write before it can read, and the other way round.
  switch (::SSL_get_error(tls_, static_cast<int>(result))) {
    case SSL_ERROR_WANT_READ:
      return Wait(POLLIN);
    case SSL_ERROR_WANT_WRITE:
      return Wait(POLLOUT);
    default:
      return false;
  }
}

}  // namespace profd
