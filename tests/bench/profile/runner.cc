// SPDX-License-Identifier: Apache-2.0
// Runs a command and says what it cost:
//
//   bench_runner RESULT COMMAND [ARG...]
//
// writes one line to the file RESULT: start and end on CLOCK_MONOTONIC in
// nanoseconds, peak RSS in KiB of the command and its children, CPU time in
// nanoseconds, wait status. A program of its own because the kernel counts
// the memory of whoever starts a command, up to its exec, as the command's:
// started from Python nothing would peak below 15 MB.
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

int64_t NowNs() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int64_t ToNs(const timeval& time) {
  return (int64_t{time.tv_sec} * 1'000'000 + time.tv_usec) * 1000;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: bench_runner RESULT COMMAND [ARG...]\n", stderr);
    return 2;
  }
  std::FILE* result = std::fopen(argv[1], "we");
  if (result == nullptr) {
    std::perror(argv[1]);
    return 1;
  }
  pid_t child = 0;
  const int64_t start = NowNs();
  const int error =
      ::posix_spawnp(&child, argv[2], nullptr, nullptr, argv + 2, environ);
  if (error != 0) {
    std::fprintf(stderr, "bench_runner: %s: %s\n", argv[2],
                 std::strerror(error));
    return 1;
  }
  int status = 0;
  rusage usage = {};
  if (::wait4(child, &status, 0, &usage) != child) {
    std::perror("bench_runner: wait4");
    return 1;
  }
  const int64_t end = NowNs();
  const int64_t cpu = ToNs(usage.ru_utime) + ToNs(usage.ru_stime);
  std::fprintf(result, "%" PRId64 " %" PRId64 " %ld %" PRId64 " %d\n", start,
               end, usage.ru_maxrss, cpu, status);
  return std::fclose(result) == 0 ? 0 : 1;
}
