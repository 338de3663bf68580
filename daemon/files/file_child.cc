// SPDX-License-Identifier: Apache-2.0
#include "daemon/files/file_child.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "daemon/files/file_worker.h"

namespace profd {
namespace {

using ksym::Error;
using ksym::FailErrno;
using ksym::OpenedFile;
using ksym::Result;
using ksym::UniqueFd;

using Kind = FileRequest::Kind;

// No device has this.
constexpr uint64_t kByPath = ~uint64_t{0};
// How long a wait leaves answers to others that came for it.
constexpr std::chrono::milliseconds kLookPeriod(5);

std::unexpected<Error> FailSilent(const std::string& path) {
  return FailErrno(ETIMEDOUT, path);
}

// The user to be asked is the one who runs a program from there. /proc tells
// without the file.
std::string Describe(const FileRequest& request) {
  std::string text = request.mapping.path;
  struct stat status = {};
  const std::string process = "/proc/" + std::to_string(request.pid);
  if (request.pid != 0 && ::stat(process.c_str(), &status) == 0) {
    text += " (of user " + std::to_string(status.st_uid) + ")";
  }
  return text;
}

// A part of the bytes of all copies, while it lives.
class Room {
 public:
  Room(std::shared_ptr<std::atomic<uint64_t>> all, uint64_t bytes)
      : all_(std::move(all)), bytes_(bytes) {
    *all_ += bytes_;
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  ~Room() { *all_ -= bytes_; }

 private:
  const std::shared_ptr<std::atomic<uint64_t>> all_;
  const uint64_t bytes_;
};

}  // namespace

Result<std::unique_ptr<FileChild>> FileChild::Start(
    std::shared_ptr<ksym::FileOpener> opener) {
  if (!opener) opener = ksym::DirectFileOpener();
  int sockets[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
    return FailErrno(errno, "socketpair");
  }
  UniqueFd ours(sockets[0]);
  // Closed here when this returns: else the socket would not tell that the
  // child is gone.
  const UniqueFd theirs(sockets[1]);
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return FailErrno(errno, "fork");
  if (pid == 0) {
    ServeFileRequests(theirs.get(), self, kMaxGivenUp + kMaxAtWork, *opener);
  }
  return std::unique_ptr<FileChild>(new FileChild(pid, std::move(ours)));
}

FileChild::FileChild(pid_t pid, UniqueFd socket)
    : pid_(pid),
      socket_(std::move(socket)),
      bytes_(std::make_shared<std::atomic<uint64_t>>(0)) {}

// It never hangs itself, and its end is that of its workers, which have another
// parent then.
FileChild::~FileChild() {
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

FileChild::FileSystem FileChild::FileSystemOf(const FileRequest& request) {
  if (request.kind == Kind::kOpenPath) return {kByPath, request.pid};
  return {request.mapping.device_major, request.mapping.device_minor};
}

std::shared_ptr<const void> FileChild::TakeRoom(uint64_t bytes) {
  return std::make_shared<const Room>(bytes_, bytes);
}

// Locked. Why there is nobody to be asked now.
std::optional<Error> FileChild::Refusal(const Asked& asked) {
  const std::string& path = asked.request.mapping.path;
  const auto now = Clock::now();
  std::erase_if(given_up_, [now](const auto& entry) {
    return entry.second.has_ended && entry.second.until <= now;
  });
  if (is_broken_) return Error::FromErrno(EIO, path);
  if (asked_.size() >= kMaxAsked) return Error::FromErrno(EAGAIN, path);
  const bool is_silent = given_up_.size() >= kMaxGivenUp ||
                         std::ranges::any_of(given_up_, [&](const auto& entry) {
                           return entry.second.of == asked.of;
                         });
  if (is_silent) return Error::FromErrno(ETIMEDOUT, path);
  const bool is_copied = asked.request.kind != Kind::kHold;
  if (is_copied && asked.request.held.size > asked.request.max_bytes) {
    return Error::FromErrno(EFBIG, path);
  }
  return std::nullopt;
}

uint64_t FileChild::Ask(FileRequest request, Clock::duration patience) {
  const std::scoped_lock lock(mutex_);
  // What has come may end a pause, and makes turns free.
  Receive();
  const uint64_t id = ++last_id_;
  Asked asked;
  asked.of = FileSystemOf(request);
  asked.deadline = Clock::now() + patience;
  const uint64_t left = kMaxBytes - std::min<uint64_t>(kMaxBytes, *bytes_);
  request.id = id;
  request.max_bytes = std::min(kMaxFileBytes, left);
  asked.request = std::move(request);
  if (auto refusal = Refusal(asked)) {
    asked.answer = std::unexpected(std::move(*refusal));
  } else if (asked.request.kind == Kind::kRead) {
    asked.room = TakeRoom(asked.request.held.size);
  } else if (asked.request.kind == Kind::kOpenPath) {
    // Until it is open nobody knows its size, so all that it may have is taken.
    asked.room = TakeRoom(asked.request.max_bytes);
  }
  asked_.emplace(id, std::move(asked));
  Send();
  return id;
}

// Locked. Those whose turn it is.
void FileChild::Send() {
  for (auto& [id, asked] : asked_) {
    if (at_work_ >= kMaxAtWork) return;
    if (asked.is_sent || asked.answer) continue;
    asked.is_sent = true;
    const auto sent = SendRequest(socket_.get(), asked.request);
    // The message has a descriptor of its own (SCM_RIGHTS in unix(7)).
    asked.request.held.fd.Reset();
    if (sent) {
      ++at_work_;
    } else {
      asked.answer = std::unexpected(sent.error());
    }
  }
}

// Locked. All that has come.
void FileChild::Receive() {
  while (!is_broken_) {
    auto received = ReceiveAnswer(socket_.get());
    if (received) {
      std::optional<FileAnswer>& answer = *received;
      if (answer) Answer(std::move(*answer));
      continue;
    }
    if (received.error().sys_errno() == EAGAIN) break;
    Fail(received.error());
  }
  Send();
}

// Locked.
void FileChild::Answer(FileAnswer answer) {
  const auto given_up = given_up_.find(answer.id);
  if (given_up != given_up_.end()) {
    // Too late for anybody: the file is closed. The file system may be asked
    // again once the worker has ended.
    given_up->second.has_ended |= answer.has_ended;
    return;
  }
  const auto found = asked_.find(answer.id);
  if (found == asked_.end() || found->second.answer) return;
  Asked& asked = found->second;
  --at_work_;
  if (answer.has_ended) {
    // The worker died without an answer, as at one of its limits.
    asked.answer = FailErrno(EIO, asked.request.mapping.path.str());
    asked.room.reset();
    return;
  }
  if (!answer.file) {
    asked.answer = std::unexpected(
        std::move(answer.file.error()).WithContext(asked.request.mapping.path));
  } else {
    OpenedFile& file = *answer.file;
    // What it really has takes the place of what it might have had.
    if (asked.room) file.room = TakeRoom(file.size);
    file.remote = std::make_shared<const ksym::RemoteFile>(ksym::RemoteFile{
        .pid = asked.request.pid, .mapping = asked.request.mapping});
    asked.answer = std::move(file);
  }
  asked.room.reset();
}

// Locked. The child is gone: nobody will ever answer.
void FileChild::Fail(const Error& error) {
  is_broken_ = true;
  at_work_ = 0;
  for (auto& [id, asked] : asked_) {
    if (!asked.answer) asked.answer = std::unexpected(error);
    asked.room.reset();
  }
}

// Locked. It has been sent.
void FileChild::GiveUp(uint64_t id, const Asked& asked) {
  // The worker counts among those that hang from here on, and another one may
  // begin.
  --at_work_;
  ++given_up_count_;
  given_up_[id] = {.of = asked.of, .until = Clock::now() + kPause};
  warnings_.Add(Describe(asked.request) +
                " not used: its file system does not answer");
  FileRequest end;
  end.id = id;
  end.kind = Kind::kGiveUp;
  const auto sent = SendRequest(socket_.get(), end);
  // A socket that is full leaves the worker alive; it counts as one that hangs
  // all the same.
  if (!sent && sent.error().sys_errno() != EAGAIN) Fail(sent.error());
}

std::optional<Result<OpenedFile>> FileChild::Take(uint64_t id) {
  const std::scoped_lock lock(mutex_);
  Receive();
  const auto found = asked_.find(id);
  if (found == asked_.end()) return FailErrno(EINVAL, "no such request");
  Asked& asked = found->second;
  if (!asked.answer) {
    if (Clock::now() < asked.deadline) return std::nullopt;
    // One that is still waiting for its turn has no worker that could hang.
    if (asked.is_sent) GiveUp(id, asked);
    asked.answer = FailSilent(asked.request.mapping.path);
  }
  auto answer = std::move(*asked.answer);
  asked_.erase(found);
  Send();
  return answer;
}

Result<OpenedFile> FileChild::Wait(uint64_t id) {
  for (;;) {
    if (auto answer = Take(id)) return std::move(*answer);
    WaitForNews(kLookPeriod);
  }
}

void FileChild::WaitForNews(Clock::duration time) const {
  pollfd event = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  ::poll(&event, 1, static_cast<int>(std::max<int64_t>(ms, 1)));
}

std::vector<std::string> FileChild::TakeWarnings() {
  const std::scoped_lock lock(mutex_);
  return warnings_.Take();
}

}  // namespace profd
