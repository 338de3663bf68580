// SPDX-License-Identifier: Apache-2.0
// rounds COUNTERS PROCESSES PER_SECOND COMMAND...: each process runs the shell
// commands in turns, each to its end, and counts them. All processes together
// start PER_SECOND commands a second; 0: as many as they can.

#include <string.h>
#include <time.h>

#include "load.h"

static int64_t NowNs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void SleepUntil(int64_t time_ns) {
  const struct timespec time = {.tv_sec = time_ns / 1000000000,
                                .tv_nsec = time_ns % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) ==
         EINTR) {
  }
}

static void RunCommand(char* command) {
  const pid_t child = fork();
  if (child < 0) Fail("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
    execl("/bin/sh", "sh", "-c", command, (char*)NULL);
    _exit(127);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) Fail("waitpid");
  // A command that is not there would be no load.
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    fprintf(stderr, "rounds: status %d of: %s\n", WEXITSTATUS(status), command);
    EndLoad(0);
  }
}

static int64_t period_ns;

static void Rounds(Counter* counter, char** arguments) {
  char** commands = arguments + 1;
  // The processes begin with different commands.
  char** next = commands;
  for (pid_t i = getpid() % 64; i > 0; --i) {
    if (*++next == NULL) next = commands;
  }
  for (int64_t start = NowNs();; start += period_ns) {
    if (period_ns > 0) SleepUntil(start);
    RunCommand(*next);
    counter->turns += 1;
    if (*++next == NULL) next = commands;
  }
}

int main(int count, char** arguments) {
  if (count < 5) {
    fputs("usage: rounds COUNTERS PROCESSES PER_SECOND COMMAND...\n", stderr);
    return 2;
  }
  const int64_t per_second = strtol(arguments[3], NULL, 10);
  const int64_t processes = strtol(arguments[2], NULL, 10);
  if (per_second > 0) period_ns = processes * 1000000000 / per_second;
  return RunLoad(count, arguments, &Rounds);
}
