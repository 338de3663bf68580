// SPDX-License-Identifier: Apache-2.0
#include "daemon/http/http_request_stream.h"

#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

#include <cerrno>

#include "daemon/http/socket_io.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

bool IsRead(std::string_view line) {
  const std::string name(line.substr(0, line.find(':')));
  return ::strcasecmp(name.c_str(), "Host") == 0 ||
         ::strcasecmp(name.c_str(), "Authorization") == 0;
}

// httplib would make ranges of an answer, each a copy, compress it as slowly
// as it can, and match lines with a stack as deep as they are long.
std::string OnlyWhatIsRead(std::string_view head) {
  std::string kept(ksym::TakeField(head, '\n'));
  kept += '\n';
  while (!head.empty()) {
    const std::string_view line = ksym::TakeField(head, '\n');
    if (IsRead(line)) kept.append(line) += '\n';
  }
  return kept + "\r\n";
}

}  // namespace

HttpRequestStream::HttpRequestStream(int fd, std::string_view head)
    : fd_(fd), head_(OnlyWhatIsRead(head)) {}

ssize_t HttpRequestStream::read(char* to, size_t size) {
  const size_t taken = head_.copy(to, size, read_);
  read_ += taken;
  return static_cast<ssize_t>(taken);
}

ssize_t HttpRequestStream::write(const char* from, size_t size) {
  // httplib is to believe that all was sent, and to end as it always does.
  if (is_muted_) return static_cast<ssize_t>(size);
  if (deadline_ == Clock::time_point()) {
    deadline_ = Clock::now() + kAnswerWithin;
  }
  for (;;) {
    // Never blocking: the wait below has the deadline, which send(2) has not.
    const ssize_t sent = ::send(fd_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return sent;
    if ((errno != EAGAIN && errno != EINTR) ||
        !WaitForSocket(fd_, POLLOUT, deadline_)) {
      return -1;
    }
  }
}

}  // namespace profd
