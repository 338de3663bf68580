// SPDX-License-Identifier: Apache-2.0
#include "ksym/fetch/debuginfod_child.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "ksym/base/end_with_parent.h"
#include "ksym/base/text.h"

namespace ksym {
namespace {

void Send(int socket, int error, std::string_view text) {
  DebuginfodAnswer head;
  head.error = error;
  std::array<char, kMaxDebuginfodMessage> message;
  const size_t size = std::min(text.size(), message.size() - sizeof(head));
  std::memcpy(message.data(), &head, sizeof(head));
  std::memcpy(message.data() + sizeof(head), text.data(), size);
  ::send(socket, message.data(), sizeof(head) + size, MSG_NOSIGNAL);
}

[[noreturn]] void Leave(int status) { ::_exit(status); }

// The library's functions, by the types that its header gives them.
class Library {
 public:
  explicit Library(int socket)
      : handle_(::dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) {
      const char* text = ::dlerror();
      Send(socket, ELIBACC, text == nullptr ? "" : text);
      Leave(1);
    }
    Find("debuginfod_begin", begin, socket);
    Find("debuginfod_find_debuginfo", find_debuginfo, socket);
    Find("debuginfod_get_url", get_url, socket);
  }

  decltype(&::debuginfod_begin) begin = nullptr;
  decltype(&::debuginfod_find_debuginfo) find_debuginfo = nullptr;
  decltype(&::debuginfod_get_url) get_url = nullptr;

 private:
  template <typename Function>
  void Find(const char* name, Function& function, int socket) {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (function != nullptr) return;
    Send(socket, ELIBACC,
         std::string(DEBUGINFOD_SONAME) + ": it has no " + name);
    Leave(1);
  }

  void* handle_;
};

// Nothing of the parent is kept open, its end is this one's, and no signal
// that a terminal sends to both ends this one first.
int Detach(int socket, pid_t parent) {
  EndWithParent(parent);
  // The last one, so that a file that is too large is an error of write(2)
  // (setrlimit(2)).
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ}) {
    ::signal(signal, SIG_IGN);
  }
  constexpr int kPlace = STDERR_FILENO + 1;
  if (socket != kPlace) ::dup2(socket, kPlace);
  ::close_range(kPlace + 1, ~0u, 0);
  return kPlace;
}

// The library asks the servers for no larger file; what comes all the same is
// cut off by the kernel.
void LimitFileSize(uint64_t max_bytes) {
  const char* text = std::getenv(DEBUGINFOD_MAXSIZE_ENV_VAR);
  const auto given = ParseUnsigned(text == nullptr ? "" : text, 10);
  const uint64_t bytes = std::min(given.value_or(max_bytes), max_bytes);
  ::setenv(DEBUGINFOD_MAXSIZE_ENV_VAR, std::to_string(bytes).c_str(), 1);
  const rlimit limit = {max_bytes, max_bytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

void Answer(const Library& library, debuginfod_client* client, int socket,
            const std::string& build_id) {
  char* path = nullptr;
  const int fd = library.find_debuginfo(
      client, reinterpret_cast<const unsigned char*>(build_id.c_str()), 0,
      &path);
  if (fd >= 0 && path != nullptr) {
    ::close(fd);
    Send(socket, 0, path);
  } else {
    const char* url = library.get_url(client);
    Send(socket, fd < 0 ? -fd : EIO, url == nullptr ? "" : url);
  }
  std::free(path);
}

}  // namespace

void ServeDebuginfodRequests(int socket, pid_t parent,
                             uint64_t max_file_bytes) {
  socket = Detach(socket, parent);
  LimitFileSize(max_file_bytes);
  const Library library(socket);
  debuginfod_client* client = library.begin();
  if (client == nullptr) {
    Send(socket, errno, "libdebuginfod could not be set up");
    Leave(1);
  }
  Send(socket, 0, "");
  std::array<char, kMaxDebuginfodMessage> request;
  for (;;) {
    const ssize_t size = ::recv(socket, request.data(), request.size(), 0);
    if (size <= 0) Leave(0);
    Answer(library, client, socket,
           std::string(request.data(), static_cast<size_t>(size)));
  }
}

}  // namespace ksym
