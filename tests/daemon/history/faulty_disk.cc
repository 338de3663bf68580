// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/history/faulty_disk.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace profd::history {
namespace {

#ifdef __x86_64__

// A call's number and first arguments, as it is entered.
struct Call {
  uint64_t number = 0;
  uint64_t first = 0;
  uint64_t third = 0;
};

bool ChangesFiles(const Call& call) {
  switch (call.number) {
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
      // What the test itself says.
      return call.first > STDERR_FILENO;
    case SYS_openat:
      return (call.third & (O_WRONLY | O_RDWR | O_CREAT)) != 0;
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_linkat:
    case SYS_rename:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_unlink:
    case SYS_unlinkat:
    case SYS_mkdir:
      return true;
    default:
      return false;
  }
}

// A child that stops where it enters and where it leaves a system call.
class Tracee {
 public:
  explicit Tracee(pid_t pid) : pid_(pid) {}

  // Waits; false: it has ended.
  bool WaitForStop() {
    return ::waitpid(pid_, &status_, 0) == pid_ && WIFSTOPPED(status_);
  }
  bool IsAtCall() const { return WSTOPSIG(status_) == (SIGTRAP | 0x80); }
  int status() const { return status_; }
  bool FollowCalls() const {
    return ::ptrace(PTRACE_SETOPTIONS, pid_, nullptr,
                    PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0;
  }
  void GoOn() const {
    const int signal =
        IsAtCall() || WSTOPSIG(status_) == SIGSTOP ? 0 : WSTOPSIG(status_);
    ::ptrace(PTRACE_SYSCALL, pid_, nullptr, static_cast<long>(signal));
  }
  Call Entered() const {
    return {.number = Get(offsetof(user_regs_struct, orig_rax)),
            .first = Get(offsetof(user_regs_struct, rdi)),
            .third = Get(offsetof(user_regs_struct, rdx))};
  }
  // The call that it enters is none; it returns this when it leaves.
  void Refuse() const { Set(offsetof(user_regs_struct, orig_rax), -1); }
  void Return(long result) const {
    Set(offsetof(user_regs_struct, rax), result);
  }

 private:
  uint64_t Get(size_t offset) const {
    return static_cast<uint64_t>(
        ::ptrace(PTRACE_PEEKUSER, pid_, offset, nullptr));
  }
  void Set(size_t offset, long value) const {
    ::ptrace(PTRACE_POKEUSER, pid_, offset, value);
  }

  pid_t pid_;
  int status_ = 0;
};

FaultyRun Follow(Tracee& child, pid_t pid, const DiskFault& fault) {
  FaultyRun run;
  bool is_inside = false;
  bool is_refused = false;
  for (; child.WaitForStop(); child.GoOn()) {
    if (!child.IsAtCall()) continue;
    is_inside = !is_inside;
    if (!is_inside) {
      if (is_refused) child.Return(-fault.error);
      is_refused = false;
      continue;
    }
    if (!ChangesFiles(child.Entered())) continue;
    const size_t number = run.calls++;
    if (number != fault.at && !(fault.lasts && number > fault.at)) continue;
    if (fault.error == 0) {
      ::kill(pid, SIGKILL);
      continue;
    }
    child.Refuse();
    is_refused = true;
  }
  run.was_killed = WIFSIGNALED(child.status());
  run.exit_status = WEXITSTATUS(child.status());
  return run;
}

#endif

}  // namespace

std::optional<FaultyRun> RunWithFault(const DiskFault& fault,
                                      const std::function<int()>& work) {
#ifdef __x86_64__
  const pid_t pid = ::fork();
  if (pid < 0) return {};
  if (pid == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    ::_exit(work());
  }
  Tracee child(pid);
  if (!child.WaitForStop() || !child.FollowCalls()) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return {};
  }
  child.GoOn();
  return Follow(child, pid, fault);
#else
  (void)fault;
  (void)work;
  return {};
#endif
}

}  // namespace profd::history
