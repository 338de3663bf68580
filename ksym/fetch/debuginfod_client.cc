// SPDX-License-Identifier: Apache-2.0
#include "ksym/fetch/debuginfod_client.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/linked_in.h"
#include "ksym/base/text.h"
#include "ksym/elf/elf_image.h"
#include "ksym/fetch/debuginfod_child.h"

namespace ksym {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kUrls = "DEBUGINFOD_URLS";

// "https://host:8002" of a URL that was asked: without what may be a password
// before the host, and without the path.
std::string ServerOf(std::string_view url) {
  const size_t scheme_end = url.find("://");
  const size_t host = scheme_end == std::string_view::npos ? 0 : scheme_end + 3;
  std::string_view rest = url.substr(host);
  rest = rest.substr(0, rest.find('/'));
  const size_t at = rest.rfind('@');
  if (at != std::string_view::npos) rest.remove_prefix(at + 1);
  return std::string(url.substr(0, host)) + std::string(rest);
}

// All that are asked, for when it is not known which one failed.
std::string Servers() {
  const char* urls = std::getenv(kUrls);
  std::string_view rest = urls == nullptr ? "" : urls;
  std::string servers;
  while (!rest.empty()) {
    const std::string_view url = TakeField(rest, ' ');
    if (url.empty()) continue;
    if (!servers.empty()) servers += ' ';
    servers += ServerOf(url);
  }
  return servers;
}

Error ErrorOf(int error, std::string_view url) {
  const std::string server = url.empty() ? Servers() : ServerOf(url);
  switch (error) {
    case ENOENT:
      return {ErrorCode::kNotFound, server + ": has no such debug file"};
    case ETIME:
    case ETIMEDOUT:
      return {ErrorCode::kLimit, server + ": does not answer"};
    case EFBIG:
      return {ErrorCode::kLimit, server + ": the debug file is too large"};
    default:
      return Error::FromErrno(error, server);
  }
}

Result<ByteSource> OpenFetched(const std::string& path, uint64_t max_bytes) {
  auto fd = OpenForRead(path);
  if (!fd) return Fail(std::move(fd.error()));
  struct stat status = {};
  if (::fstat(fd->get(), &status) != 0) return FailErrno(errno, path);
  const auto size = static_cast<uint64_t>(status.st_size);
  if (!S_ISREG(status.st_mode)) {
    return Fail(ErrorCode::kCorrupt, path + ": not a regular file");
  }
  if (size > max_bytes) {
    return Fail(ErrorCode::kLimit, path + ": the debug file is too large");
  }
  return ByteSource::OfFile(std::move(*fd), size);
}

}  // namespace

struct DebuginfodClient::Answer {
  int error = 0;
  std::string text;
};

Result<std::unique_ptr<DebuginfodClient>> DebuginfodClient::Start(
    const Options& options) {
  const char* urls = std::getenv(kUrls);
  if (urls == nullptr || *urls == '\0') {
    return Fail(ErrorCode::kInvalid,
                std::string(kUrls) +
                    " is not set: it says which servers to ask, such as "
                    "https://debuginfod.debian.net");
  }
  if (HasLibrariesLinkedIn()) {
    return Fail(ErrorCode::kUnsupported,
                "this program has its libraries linked in and loads none, "
                "libdebuginfod.so.1 neither: take the one of a Debian package "
                "or of your own build");
  }
  std::array<int, 2> pair = {};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) !=
      0) {
    return FailErrno(errno, "socketpair");
  }
  UniqueFd ours(pair[0]);
  UniqueFd theirs(pair[1]);
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return FailErrno(errno, "fork");
  if (pid == 0) {
    ServeDebuginfodRequests(theirs.get(), self, options.max_file_bytes);
  }
  // The client owns the child from here on, so that each failure below ends it.
  std::unique_ptr<DebuginfodClient> client(
      new DebuginfodClient(options, pid, std::move(ours)));
  // Before the first wait: as long as this end is open here too, the end of the
  // child would not be noticed.
  theirs.Reset();
  const auto ready = client->Receive();
  if (!ready) return Fail(ready.error());
  if (ready->error == ELIBACC) {
    return Fail(ErrorCode::kUnsupported,
                ready->text + "; install Debian's libdebuginfod1");
  }
  if (ready->error != 0) return FailErrno(ready->error, ready->text);
  return client;
}

DebuginfodClient::~DebuginfodClient() { End(); }

void DebuginfodClient::End() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

// Waits for the child's next message as long as there is time left.
Result<DebuginfodClient::Answer> DebuginfodClient::Receive() {
  const auto begin = Clock::now();
  pollfd entry = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        time_left_ - (Clock::now() - begin));
    if (left.count() <= 0) break;
    ready = ::poll(&entry, 1, static_cast<int>(left.count()));
  } while (ready < 0 && errno == EINTR);
  time_left_ -= Clock::now() - begin;
  // An answer that comes late would be taken for that to the next question, so
  // the child ends with the time.
  if (ready <= 0) {
    End();
    time_left_ = {};
    const auto seconds = std::chrono::duration<double>(options_.max_wait);
    std::string text = std::to_string(seconds.count());
    text.resize(text.find('.') + 2);
    return Fail(ErrorCode::kLimit,
                Servers() + ": no answer within " + text +
                    " s, the limit for all requests together");
  }
  std::array<char, kMaxDebuginfodMessage> message = {};
  const ssize_t size = ::recv(socket_.get(), message.data(), message.size(), 0);
  DebuginfodAnswer head;
  if (size < static_cast<ssize_t>(sizeof(head))) {
    End();
    time_left_ = {};
    return Fail(ErrorCode::kIo, "libdebuginfod ended its process");
  }
  std::memcpy(&head, message.data(), sizeof(head));
  return Answer{head.error,
                std::string(message.data() + sizeof(head),
                            static_cast<size_t>(size) - sizeof(head))};
}

Result<ByteSource> DebuginfodClient::Ask(const std::string& build_id) {
  if (pid_ < 0) {
    return Fail(ErrorCode::kLimit, Servers() + ": not asked any more");
  }
  if (::send(socket_.get(), build_id.data(), build_id.size(), MSG_NOSIGNAL) <
      0) {
    return FailErrno(errno, "libdebuginfod");
  }
  const auto answer = Receive();
  if (!answer) return Fail(answer.error());
  if (answer->error != 0) return Fail(ErrorOf(answer->error, answer->text));
  auto file = OpenFetched(answer->text, options_.max_file_bytes);
  if (!file) return file;
  // Servers are not trusted: only the build-id says that it is that program's.
  const auto image = ElfImage::Parse(*file);
  if (!image || ToHex(image->build_id()) != build_id) {
    return Fail(ErrorCode::kCorrupt, Servers() + ": what came is another file");
  }
  return file;
}

std::vector<std::string> DebuginfodClient::DescribeFailures() const {
  std::vector<std::string> lines;
  lines.reserve(failures_.size());
  for (const Failure& failure : failures_) {
    lines.push_back("debuginfod: " + failure.message + " (" +
                    std::to_string(failure.files) +
                    (failure.files == 1 ? " file" : " files") + ", build-id " +
                    failure.build_id + ")");
  }
  return lines;
}

Result<ByteSource> DebuginfodClient::Find(const std::string& build_id) {
  if (not_there_.contains(build_id)) {
    return Fail(ErrorCode::kNotFound, build_id + ": was asked for before");
  }
  auto file = Ask(build_id);
  if (file) {
    ++files_found_;
    return file;
  }
  // Whatever the failure was: a server that is slow once would take the time of
  // all other files if it was asked again for each.
  if (not_there_.size() < kMaxRemembered) not_there_.insert(build_id);
  const std::string& message = file.error().message();
  const auto same = std::ranges::find(failures_, message, &Failure::message);
  if (same != failures_.end()) {
    ++same->files;
  } else if (failures_.size() < kMaxFailures) {
    failures_.push_back({message, build_id, 1});
  }
  return file;
}

}  // namespace ksym
