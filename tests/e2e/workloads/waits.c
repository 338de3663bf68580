// SPDX-License-Identifier: Apache-2.0
/*
 * Threads whose waits are known. Says "ready" and waits for SIGUSR1; then each
 * kind of wait has a thread for the seconds that are given, and when all have
 * ended a line each: its name, what the kernel counts that it ran and waited
 * for a CPU, and how long it lived, in nanoseconds. Then it sleeps for ever.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds;
static const char* directory;

static int64_t NowNs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void SleepNs(long ns) {
  const struct timespec time = {ns / 1000000000, ns % 1000000000};
  nanosleep(&time, NULL);
}

// Each wait has functions of its own on its stack.
static void Wait_sleep(void) { SleepNs(7000000); }

static pthread_mutex_t condition_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static void Wait_condvar(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 9000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    ++until.tv_sec;
  }
  pthread_mutex_lock(&condition_lock);
  pthread_cond_timedwait(&condition, &condition_lock, &until);
  pthread_mutex_unlock(&condition_lock);
}

// Three threads, of which each holds what the next one waits for.
static pthread_mutex_t chain[3] = {PTHREAD_MUTEX_INITIALIZER,
                                   PTHREAD_MUTEX_INITIALIZER,
                                   PTHREAD_MUTEX_INITIALIZER};
static void Hold(int lock) {
  pthread_mutex_lock(&chain[lock]);
  SleepNs(5000000);
  pthread_mutex_unlock(&chain[lock]);
}
static void Wait_first(void) { Hold(0); }
static void Wait_second(void) {
  pthread_mutex_lock(&chain[1]);
  Hold(0);
  pthread_mutex_unlock(&chain[1]);
}
static void Wait_third(void) { Hold(1); }

static int ends[2];
static void Wait_pipe(void) {
  char byte;
  const ssize_t got = read(ends[0], &byte, 1);
  if (got < 0) abort();
  // Its writer has begun earlier, and so has ended.
  if (got == 0) SleepNs(1000000);
}
static void Wait_writer(void) {
  SleepNs(11000000);
  if (write(ends[1], "x", 1) != 1) abort();
}

static void Wait_poll(void) { poll(NULL, 0, 6); }

static void Wait_fsync(void) {
  static int fd = -1;
  static char page[4096];
  if (fd < 0) {
    char path[256];
    snprintf(path, sizeof(path), "%s/fsync", directory);
    fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
  }
  if (pwrite(fd, page, sizeof(page), 0) != sizeof(page)) abort();
  fsync(fd);
}

static void Wait_vfork(void) {
  const pid_t child = vfork();
  if (child == 0) {
    SleepNs(8000000);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static void Wait_spin(void) {
  for (volatile int i = 0; i < 100000; ++i) {
  }
}

static void Wait_yield(void) {
  for (int i = 0; i < 100; ++i) syscall(SYS_sched_yield);
}

static void* Nothing(void* unused) {
  SleepNs(1000000);
  return unused;
}
static void Wait_threads(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, Nothing, NULL) != 0) abort();
  pthread_join(thread, NULL);
}

struct Kind {
  const char* name;
  void (*wait)(void);
  int64_t life_ns;
  char schedstat[64];
};

static struct Kind kinds[] = {
    {.name = "sleep", .wait = Wait_sleep},
    {.name = "condvar", .wait = Wait_condvar},
    {.name = "first", .wait = Wait_first},
    {.name = "second", .wait = Wait_second},
    {.name = "third", .wait = Wait_third},
    {.name = "pipe", .wait = Wait_pipe},
    {.name = "writer", .wait = Wait_writer},
    {.name = "poll", .wait = Wait_poll},
    {.name = "fsync", .wait = Wait_fsync},
    {.name = "vfork", .wait = Wait_vfork},
    {.name = "spin1", .wait = Wait_spin},
    {.name = "spin2", .wait = Wait_spin},
    {.name = "spin3", .wait = Wait_spin},
    {.name = "yield", .wait = Wait_yield},
    {.name = "threads", .wait = Wait_threads},
};
enum { kKinds = sizeof(kinds) / sizeof(kinds[0]) };

static void* Run(void* argument) {
  struct Kind* kind = argument;
  const int64_t begin = NowNs();
  const int64_t end = begin + (int64_t)(seconds * 1e9);
  prctl(PR_SET_NAME, kind->name);
  while (NowNs() < end) kind->wait();
  // Nobody would wake a reader that began later.
  if (kind->wait == Wait_writer) close(ends[1]);
  kind->life_ns = NowNs() - begin;
  const int fd = open("/proc/thread-self/schedstat", O_RDONLY);
  // Once more, so that the sums are those of now.
  SleepNs(1000000);
  const ssize_t got =
      pread(fd, kind->schedstat, sizeof(kind->schedstat) - 1, 0);
  if (got <= 0) abort();
  close(fd);
  return NULL;
}

static void* Sleeper(void* unused) {
  prctl(PR_SET_NAME, "sleeper");
  pause();
  return unused;
}

static void Begin(int signal) { (void)signal; }

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  seconds = atof(argv[1]);
  directory = argv[2];
  signal(SIGUSR1, Begin);
  sigset_t none;
  sigset_t begin;
  sigemptyset(&none);
  sigemptyset(&begin);
  sigaddset(&begin, SIGUSR1);
  // Before there is another thread, which would take the signal.
  sigprocmask(SIG_BLOCK, &begin, NULL);
  pthread_t sleeper;
  pthread_create(&sleeper, NULL, Sleeper, NULL);
  const pid_t stopped = fork();
  if (stopped == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "stopped");
    raise(SIGSTOP);
    _exit(0);
  }
  // Here, so that the child does not keep the writer's end open.
  if (pipe(ends) != 0) return 1;
  printf("stopped %d\nready\n", stopped);
  fflush(stdout);
  sigsuspend(&none);
  pthread_t threads[kKinds];
  for (int i = 0; i < kKinds; ++i) {
    pthread_create(&threads[i], NULL, Run, &kinds[i]);
  }
  for (int i = 0; i < kKinds; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kKinds; ++i) {
    uint64_t ran = 0;
    uint64_t waited = 0;
    sscanf(kinds[i].schedstat, "%" SCNu64 " %" SCNu64, &ran, &waited);
    printf("%s %" PRIu64 " %" PRIu64 " %" PRId64 "\n", kinds[i].name, ran,
           waited, kinds[i].life_ns);
  }
  printf("done\n");
  fflush(stdout);
  for (;;) pause();
}
