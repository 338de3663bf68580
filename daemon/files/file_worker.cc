// SPDX-License-Identifier: Apache-2.0
#include "daemon/files/file_worker.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/files/file_messages.h"
#include "ksym/base/end_with_parent.h"
#include "ksym/base/file.h"

namespace profd {
namespace {

using ksym::Fail;
using ksym::FailErrno;
using ksym::OpenedFile;
using ksym::Result;
using ksym::UniqueFd;

constexpr size_t kBlockBytes = size_t{256} << 10;
// CPU time that a worker has to copy a file.
constexpr rlim_t kWorkerSeconds = 10;
constexpr rlim_t kWorkerDescriptors = 64;
// The capabilities that opening the files of others takes, and no more.
constexpr auto kNeeded =
    std::to_array<unsigned>({CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH,
                             CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN});

// A process that is left behind must keep nothing of this one's: a pipe whose
// reader waits for its end, a terminal, a directory.
int Detach(int socket, pid_t parent) {
  // The thread that forked is the first one, which calls FileChild::Start().
  ksym::EndWithParent(parent);
  ::prctl(PR_SET_NAME, "ksym-files");
  ::setsid();
  // Signals to the group of the program are not for this one. Without SIGXFSZ a
  // copy over its limit is an error of write(2).
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1,
                           SIGUSR2, SIGALRM, SIGXFSZ}) {
    ::signal(signal, SIG_IGN);
  }
  const int nothing = ::open("/dev/null", O_RDWR);
  constexpr int kPlace = STDERR_FILENO + 1;
  if (socket != kPlace) ::dup2(socket, kPlace);
  if (nothing >= 0) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      ::dup2(nothing, fd);
    }
  }
  // Also the other end of the socket: while it is open here, the program's end
  // would not be seen.
  ::close_range(kPlace + 1, ~0U, 0);
  if (::chdir("/") != 0) ::_exit(1);
  return kPlace;
}

// A worker that waits for a CPU looks like one that waits for a file.
void Hurry() { ::setpriority(PRIO_PROCESS, 0, -20); }

void DropCapabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data = {};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return;
  std::array<uint32_t, _LINUX_CAPABILITY_U32S_3> needed = {};
  for (const unsigned capability : kNeeded) {
    needed[CAP_TO_INDEX(capability)] |= CAP_TO_MASK(capability);
  }
  for (size_t i = 0; i < data.size(); ++i) {
    data[i].effective &= needed[i];
    data[i].permitted &= needed[i];
    data[i].inheritable = 0;
  }
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  ::syscall(SYS_capset, &header, data.data());
}

// Limits that cannot be set are left out: each is a second line behind bounds
// of our own.
void Limit(uint64_t file_bytes) {
  const auto set = [](auto resource, rlim_t most) {
    const rlimit limit = {most, most};
    ::setrlimit(resource, &limit);
  };
  set(RLIMIT_CPU, kWorkerSeconds);
  set(RLIMIT_CORE, 0);
  set(RLIMIT_NOFILE, kWorkerDescriptors);
  set(RLIMIT_FSIZE, file_bytes);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

ksym::Status CopyBytes(int from, uint64_t size, int to) {
  std::vector<std::byte> block(std::min<uint64_t>(size, kBlockBytes));
  for (uint64_t done = 0; done < size;) {
    const auto part =
        std::span(block).first(std::min<uint64_t>(size - done, block.size()));
    auto copied = ksym::ReadExactlyAt(from, done, part);
    if (copied) {
      copied = ksym::WriteAll(
          to, {reinterpret_cast<const char*>(part.data()), part.size()});
    }
    if (!copied) return copied;
    done += part.size();
  }
  return {};
}

// In memory, and nobody can change it any more.
Result<OpenedFile> Copy(OpenedFile file, uint64_t max_bytes) {
  if (file.size > max_bytes) {
    return FailErrno(EFBIG, std::to_string(file.size) + " bytes");
  }
  UniqueFd copy(::memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!copy.valid()) return FailErrno(errno, "memfd_create");
  auto copied = CopyBytes(file.fd.get(), file.size, copy.get());
  if (!copied) return Fail(std::move(copied.error()));
  if (::fcntl(copy.get(), F_ADD_SEALS,
              F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return FailErrno(errno, "F_ADD_SEALS");
  }
  file.fd = std::move(copy);
  return file;
}

Result<OpenedFile> Read(FileRequest& request, ksym::FileOpener& opener) {
  OpenedFile file = std::move(request.held);
  if (!file.fd.valid()) return FailErrno(EBADF, "no file to read");
  auto opened = opener.Open(file);
  if (!opened) return Fail(std::move(opened.error()));
  struct stat status = {};
  if (::fstat(file.fd.get(), &status) != 0) return FailErrno(errno, "fstat");
  // The holding was of the file that is mapped: one that was changed since has
  // other code.
  if (static_cast<uint64_t>(status.st_size) != file.size ||
      ksym::MtimeNs(status) != file.mtime_ns) {
    return Fail(ksym::ErrorCode::kInvalid, "changed since it was mapped");
  }
  const auto owner = ksym::OwnerOf(file.fd.get());
  if (!owner) return Fail(ksym::Error(owner.error()));
  file.inode = status.st_ino;
  file.owner = *owner;
  return Copy(std::move(file), request.max_bytes);
}

Result<OpenedFile> Work(FileRequest& request, ksym::FileOpener& opener) {
  switch (request.kind) {
    case FileRequest::Kind::kHold:
      return opener.Hold(request.pid, request.mapping);
    case FileRequest::Kind::kRead:
      return Read(request, opener);
    case FileRequest::Kind::kOpenPath: {
      auto file =
          opener.OpenPath(request.pid, request.mapping.path, request.links);
      if (!file) return file;
      return Copy(std::move(*file), request.max_bytes);
    }
    case FileRequest::Kind::kGiveUp:
      break;
  }
  return FailErrno(EINVAL, "no request");
}

class Supervisor {
 public:
  Supervisor(int socket, size_t max_workers, ksym::FileOpener& opener)
      : socket_(socket), max_workers_(max_workers), opener_(opener) {}

  [[noreturn]] void Run() {
    sigset_t ended;
    ::sigemptyset(&ended);
    ::sigaddset(&ended, SIGCHLD);
    // What the program has blocked does not count here.
    ::sigprocmask(SIG_SETMASK, &ended, nullptr);
    // A program that ignores it would have its children's ends go unseen
    // (wait(2)).
    ::signal(SIGCHLD, SIG_DFL);
    const UniqueFd signals(::signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals.valid()) ::_exit(1);
    std::array<pollfd, 2> events = {
        {{socket_, POLLIN, 0}, {signals.get(), POLLIN, 0}}};
    for (;;) {
      if (::poll(events.data(), events.size(), -1) < 0 && errno != EINTR) {
        ::_exit(1);
      }
      // First: workers that have ended make room for the request.
      if (events[1].revents != 0) Reap(signals.get());
      if (events[0].revents != 0) TakeRequest();
    }
  }

 private:
  void TakeRequest() {
    auto received = ReceiveRequest(socket_);
    if (!received) {
      if (received.error().sys_errno() == EAGAIN) return;
      ::_exit(0);  // the program has ended; so do the workers
    }
    std::optional<FileRequest>& request = *received;
    if (!request) return;
    if (request->kind != FileRequest::Kind::kGiveUp) return Begin(*request);
    for (const auto& [pid, id] : workers_) {
      if (id == request->id) ::kill(pid, SIGKILL);
    }
  }

  void Begin(FileRequest& request) {
    const pid_t self = ::getpid();
    const pid_t pid = workers_.size() < max_workers_ ? ::fork() : -1;
    if (pid == 0) ServeOne(request, self);
    if (pid > 0) {
      workers_[pid] = request.id;
      return;
    }
    // Both messages of a worker, as the program counts answers and ends.
    Tell({.id = request.id, .file = FailErrno(EAGAIN, "too many at once")});
    Tell({.id = request.id, .has_ended = true});
  }

  [[noreturn]] void ServeOne(FileRequest& request, pid_t parent) {
    ksym::EndWithParent(parent);
    Limit(request.max_bytes);
    FileAnswer answer;
    answer.id = request.id;
    answer.file = Work(request, opener_);
    Tell(answer);
    ::_exit(0);
  }

  void Reap(int signals) {
    signalfd_siginfo info = {};
    // One signal may stand for several workers (signal(7)), so it says only
    // that some have ended.
    while (::read(signals, &info, sizeof(info)) > 0) {
    }
    for (;;) {
      const pid_t pid = ::waitpid(-1, nullptr, WNOHANG);
      if (pid <= 0) return;
      const auto worker = workers_.find(pid);
      if (worker == workers_.end()) continue;
      Tell({.id = worker->second, .has_ended = true});
      workers_.erase(worker);
    }
  }

  // The socket has room for all workers' answers. A parent so far behind that
  // it has not gives up.
  void Tell(const FileAnswer& answer) const {
    const auto sent = SendAnswer(socket_, answer);
    if (!sent && sent.error().sys_errno() != EAGAIN) ::_exit(0);
  }

  const int socket_;
  const size_t max_workers_;
  ksym::FileOpener& opener_;
  std::map<pid_t, uint64_t> workers_;  // ids of requests
};

}  // namespace

void ServeFileRequests(int socket, pid_t parent, size_t max_workers,
                       ksym::FileOpener& opener) {
  socket = Detach(socket, parent);
  // That takes CAP_SYS_NICE, which is not among those that are kept.
  Hurry();
  DropCapabilities();
  Supervisor(socket, max_workers, opener).Run();
}

}  // namespace profd
