// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace profd {
namespace {

struct Pipe {
  ksym::UniqueFd read;
  ksym::UniqueFd write;
};

ksym::Result<Pipe> MakePipe() {
  std::array<int, 2> fds = {};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0)
    return ksym::FailErrno(errno, "pipe");
  return Pipe{ksym::UniqueFd(fds[0]), ksym::UniqueFd(fds[1])};
}

// What we changed for ourselves and the command must not inherit.
void RestoreSignals() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
}

[[noreturn]] void RunChild(std::vector<std::string>& arguments, int go,
                           int failure, Command::Stdout output) {
  RestoreSignals();
  char byte = 0;
  ssize_t n = 0;
  do {
    n = ::read(go, &byte, 1);
  } while (n < 0 && errno == EINTR);
  // The pipe was closed without a byte: the capture did not come about.
  if (n != 1) ::_exit(125);
  if (output == Command::Stdout::kToStderr)
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  const int error = errno;
  // The parent learns the cause; if it is gone nobody needs to.
  if (::write(failure, &error, sizeof(error)) < 0) ::_exit(126);
  ::_exit(127);
}

}  // namespace

ksym::Result<Command> Command::Prepare(std::vector<std::string> arguments,
                                       Stdout output) {
  auto go = MakePipe();
  if (!go) return ksym::Fail(std::move(go.error()));
  auto failure = MakePipe();
  if (!failure) return ksym::Fail(std::move(failure.error()));
  const pid_t pid = ::fork();
  if (pid < 0) return ksym::FailErrno(errno, "fork");
  if (pid == 0) {
    // Or the child would hold its own go-pipe open and never see it close.
    go->write.Reset();
    RunChild(arguments, go->read.get(), failure->write.get(), output);
  }
  return Command(pid, arguments.front(), std::move(go->write),
                 std::move(failure->read));
}

Command::Command(Command&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      name_(std::move(other.name_)),
      go_(std::move(other.go_)),
      failure_(std::move(other.failure_)) {}

Command::~Command() {
  // One that runs is left alone: it is the user's.
  if (pid_ < 0 || !go_.valid()) return;
  go_.Reset();
  ::waitpid(pid_, nullptr, 0);
}

ksym::Status Command::Go() {
  const char byte = 1;
  if (::write(go_.get(), &byte, 1) != 1) return ksym::FailErrno(errno, name_);
  go_.Reset();
  int error = 0;
  ssize_t n = 0;
  do {  // ends when exec closes the pipe or the error comes through it
    n = ::read(failure_.get(), &error, sizeof(error));
  } while (n < 0 && errno == EINTR);
  if (n != sizeof(error)) return {};
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
  return ksym::FailErrno(error, name_);
}

std::optional<int> Command::Poll() {
  int status = 0;
  if (pid_ < 0 || ::waitpid(pid_, &status, WNOHANG) != pid_) {
    return std::nullopt;
  }
  pid_ = -1;
  return status;
}

int ExitStatusOf(int wait_status) {
  constexpr int kKilled = 128;
  return WIFSIGNALED(wait_status) ? kKilled + WTERMSIG(wait_status)
                                  : WEXITSTATUS(wait_status);
}

std::string DescribeWaitStatus(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("was killed by signal {}", WTERMSIG(status));
  }
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

}  // namespace profd
