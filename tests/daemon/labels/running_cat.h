// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/now_ns.h"
#include "ksym/base/file.h"
#include "ksym/base/text.h"
#include "ksym/process/process_image.h"

namespace profd {

// A process with that environment, which waits until this object goes.
class RunningCat {
 public:
  explicit RunningCat(const std::vector<std::string>& environment) {
    std::vector<const char*> variables;
    variables.reserve(environment.size() + 1);
    std::string bytes;
    for (const std::string& variable : environment) {
      variables.push_back(variable.c_str());
      bytes += variable + '\0';
    }
    variables.push_back(nullptr);
    std::array<int, 2> ends = {};
    if (::pipe(ends.data()) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[0], 0);
      ::close(ends[1]);
      ::execle("/bin/cat", "cat", nullptr, variables.data());
      ::_exit(1);
    }
    ::close(ends[0]);
    input_ = ends[1];
    process_ = {.pid = static_cast<uint32_t>(pid_), .start_ns = StartNs()};
    // Until then it is a copy of this process, then one without variables
    // (begin_new_exec() and create_elf_tables() of the kernel).
    for (int i = 0; i < 500 && !(IsCat() && Read("environ") == bytes); ++i) {
      ::usleep(10'000);
    }
  }
  ~RunningCat() { End(); }
  RunningCat(const RunningCat&) = delete;
  RunningCat& operator=(const RunningCat&) = delete;

  const ksym::ProcessId& process() const { return process_; }

  void End() {
    if (input_ < 0) return;
    ::close(input_);
    ::waitpid(pid_, nullptr, 0);
    input_ = -1;
  }

 private:
  std::string Read(const std::string& name) const {
    return ksym::ReadFile("/proc/" + std::to_string(pid_) + "/" + name, 1 << 20)
        .value_or(std::string());
  }
  bool IsCat() const { return Read("comm") == "cat\n"; }
  uint64_t StartNs() const {
    const std::string stat = Read("stat");
    std::string_view rest = stat;
    rest.remove_prefix(rest.rfind(") ") + 2);
    for (int i = 0; i < 19; ++i) ksym::TakeField(rest, ' ');
    const auto ticks = ksym::ParseUnsigned(ksym::TakeField(rest, ' '), 10);
    return ticks.value_or(0) *
           (kNsPerSecond / static_cast<uint64_t>(::sysconf(_SC_CLK_TCK)));
  }

  pid_t pid_ = -1;
  int input_ = -1;
  ksym::ProcessId process_ = {};
};

}  // namespace profd
