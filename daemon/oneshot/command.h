// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// A child process that waits before it becomes the command, so that the
// capture can select it first. Killed and reaped if it never got its go.
class Command {
 public:
  enum class Stdout { kInherit, kToStderr };
  // Forks. `output`: where the command's stdout goes; the report may need
  // ours.
  static ksym::Result<Command> Prepare(std::vector<std::string> arguments,
                                       Stdout output);
  Command(Command&& other) noexcept;
  Command& operator=(Command&&) = delete;
  ~Command();

  pid_t pid() const { return pid_; }
  // Lets it run. Fails when the command cannot be executed.
  ksym::Status Go();
  // The status of waitpid(2) once the child has ended. Does not block.
  std::optional<int> Poll();

 private:
  Command(pid_t pid, std::string name, ksym::UniqueFd go,
          ksym::UniqueFd failure)
      : pid_(pid),
        name_(std::move(name)),
        go_(std::move(go)),
        failure_(std::move(failure)) {}

  pid_t pid_ = -1;  // -1: reaped or moved from
  std::string name_;
  ksym::UniqueFd go_;       // closing it without a byte cancels
  ksym::UniqueFd failure_;  // the child's errno if exec failed
};

// What a shell has as exit status of such a command: 128 and the signal of one
// that was killed.
int ExitStatusOf(int wait_status);

// "exited with status 3", "was killed by signal 9".
std::string DescribeWaitStatus(int status);

}  // namespace profd
