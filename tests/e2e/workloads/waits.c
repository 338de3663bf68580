// SPDX-License-Identifier: Apache-2.0
/*
 * Threads whose waits are known:
 *
 *   waits SECONDS DIRECTORY [SPINNERS [more|stay]]
 *
 * Says "ready" and waits for SIGUSR1; then each kind of wait has a thread for
 * the seconds that are given, and when all have ended a line each: its name,
 * what the kernel counts that it ran and waited for a CPU, how long it lived
 * and when it was made (CLOCK_MONOTONIC), in nanoseconds, and its tid. Lines
 * "place NAME NANOSECONDS" say how long it was in each of two functions. Then
 * it sleeps for ever. With "more" there are those kinds that take much of a
 * disk or start processes; with "stay" as well, and no thread ends.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds;
static const char* directory;
static bool stay;

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

// Each period of the test's samples (199 Hz) has the same two waits, of which
// one is nine times as long as the other one.
static int64_t step_ns[2];
static int64_t step_due;
static void StepUntil(int64_t due) {
  const struct timespec time = {due / 1000000000, due % 1000000000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}
static void Step_long(int64_t due) { StepUntil(due); }
static void Step_short(int64_t due) { StepUntil(due); }
static void Wait_step(void) {
  const int64_t period = 1000000000 / 199;
  if (step_due == 0) step_due = NowNs();
  const int64_t begin = NowNs();
  Step_long(step_due + period * 9 / 10);
  const int64_t middle = NowNs();
  Step_short(step_due + period);
  const int64_t end = NowNs();
  step_ns[0] += middle - begin;
  step_ns[1] += end - middle;
  step_due += period;
  // One that was late by periods goes on from now.
  if (step_due < end - period) step_due = end;
}

// A file of this many pages, whose contents are on the disk.
enum { kPages = 256, kPageBytes = 4096 };
static int OpenPages(const char* name, int flags) {
  static char page[kPageBytes];
  char path[256];
  snprintf(path, sizeof(path), "%s/%s", directory, name);
  const int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
  if (fd < 0) abort();
  for (int i = 0; i < kPages; ++i) {
    if (write(fd, page, sizeof(page)) != sizeof(page)) abort();
  }
  fsync(fd);
  close(fd);
  return open(path, O_RDWR | flags);
}
static int NextPage(void) {
  static __thread unsigned page;
  return (int)((page += 37) % kPages);
}

static int direct_fd = -1;
static void Wait_direct(void) {
  static char page[kPageBytes] __attribute__((aligned(kPageBytes)));
  if (pread(direct_fd, page, kPageBytes, (off_t)NextPage() * kPageBytes) !=
      kPageBytes) {
    abort();
  }
  SleepNs(3000000);
}

static int fault_fd;
static char* fault_pages;
static char Touch(const volatile char* page) { return *page; }
static void Wait_fault(void) {
  const off_t at = (off_t)NextPage() * kPageBytes;
  madvise(fault_pages, (size_t)kPages * kPageBytes, MADV_DONTNEED);
  posix_fadvise(fault_fd, 0, 0, POSIX_FADV_DONTNEED);
  Touch(fault_pages + at);
  SleepNs(3000000);
}

static void Wait_migrate(void) {
  static int cpu;
  cpu_set_t all;
  cpu_set_t one;
  // The CPUs of the process, whose first thread stays where it may be.
  if (sched_getaffinity(getpid(), sizeof(all), &all) != 0) abort();
  do {
    cpu = (cpu + 1) % CPU_SETSIZE;
  } while (!CPU_ISSET(cpu, &all));
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (sched_setaffinity(0, sizeof(one), &one) != 0) abort();
  SleepNs(3000000);
}

// A process of which one thread sleeps when the other one ends both.
static void* Abandoned(void* unused) {
  pause();
  return unused;
}
static void StartAbandoned(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, Abandoned, NULL) != 0) _exit(1);
  SleepNs(2000000);
}
static void Wait_exec(void) {
  const pid_t child = fork();
  if (child == 0) {
    StartAbandoned();
    execl("/proc/self/exe", "waits", "after-exec", (char*)NULL);
    _exit(1);
  }
  waitpid(child, NULL, 0);
}
static void Wait_exit(void) {
  const pid_t child = fork();
  if (child == 0) {
    StartAbandoned();
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

struct Kind {
  const char* name;
  void (*wait)(void);
  bool more;
  bool left_out;
  int64_t made_ns;
  int64_t life_ns;
  pid_t tid;
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
    {.name = "spin4", .wait = Wait_spin},
    {.name = "spin5", .wait = Wait_spin},
    {.name = "spin6", .wait = Wait_spin},
    {.name = "spin7", .wait = Wait_spin},
    {.name = "spin8", .wait = Wait_spin},
    {.name = "yield", .wait = Wait_yield},
    {.name = "threads", .wait = Wait_threads},
    {.name = "step", .wait = Wait_step, .more = true},
    {.name = "direct", .wait = Wait_direct, .more = true},
    {.name = "fault", .wait = Wait_fault, .more = true},
    {.name = "migrate", .wait = Wait_migrate, .more = true},
    {.name = "exec", .wait = Wait_exec, .more = true},
    {.name = "exit", .wait = Wait_exit, .more = true},
};
enum { kKinds = sizeof(kinds) / sizeof(kinds[0]) };

static sem_t ended;

static void* Run(void* argument) {
  struct Kind* kind = argument;
  kind->tid = gettid();
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
  sem_post(&ended);
  while (stay) pause();
  return NULL;
}

static void* Sleeper(void* unused) {
  prctl(PR_SET_NAME, "sleeper");
  pause();
  return unused;
}

static void Begin(int signal) { (void)signal; }

// Leaves out what cannot be done here.
static void Prepare(int spinners, bool more) {
  if (more) {
    direct_fd = OpenPages("direct", O_DIRECT);
    fault_fd = OpenPages("fault", 0);
    fault_pages = mmap(NULL, (size_t)kPages * kPageBytes, PROT_READ, MAP_SHARED,
                       fault_fd, 0);
    if (fault_pages == MAP_FAILED) abort();
  }
  for (int i = 0; i < kKinds; ++i) {
    const bool is_spinner = kinds[i].wait == Wait_spin;
    kinds[i].left_out = (kinds[i].more && !more) ||
                        (kinds[i].wait == Wait_direct && direct_fd < 0) ||
                        (is_spinner && atoi(kinds[i].name + 4) > spinners);
  }
}

static void RunAll(void) {
  sem_init(&ended, 0, 0);
  // This thread must not be preempted between the time that it notes and the
  // thread that it makes: the first ones spin. Fails without the privilege.
  sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK,
                     &(struct sched_param){.sched_priority = 1});
  for (int i = 0; i < kKinds; ++i) {
    if (kinds[i].left_out) continue;
    pthread_t thread;
    kinds[i].made_ns = NowNs();
    pthread_create(&thread, NULL, Run, &kinds[i]);
    pthread_detach(thread);
  }
  sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
  for (int i = 0; i < kKinds; ++i) {
    while (!kinds[i].left_out && sem_wait(&ended) != 0) {
    }
  }
}

static void PrintAll(void) {
  for (int i = 0; i < kKinds; ++i) {
    if (kinds[i].left_out) continue;
    uint64_t ran = 0;
    uint64_t waited = 0;
    sscanf(kinds[i].schedstat, "%" SCNu64 " %" SCNu64, &ran, &waited);
    printf("%s %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %d\n",
           kinds[i].name, ran, waited, kinds[i].life_ns, kinds[i].made_ns,
           kinds[i].tid);
  }
  printf("place Step_long %" PRId64 "\nplace Step_short %" PRId64 "\n",
         step_ns[0], step_ns[1]);
  printf("done\n");
  fflush(stdout);
}

static pid_t StartStopped(void) {
  const pid_t stopped = fork();
  if (stopped == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "stopped");
    raise(SIGSTOP);
    _exit(0);
  }
  return stopped;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "after-exec") == 0) {
    prctl(PR_SET_NAME, "exec");
    SleepNs(2000000);
    return 0;
  }
  if (argc < 3) return 2;
  seconds = atof(argv[1]);
  directory = argv[2];
  stay = argc > 4 && strcmp(argv[4], "stay") == 0;
  Prepare(argc > 3 ? atoi(argv[3]) : 3, argc > 4);
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
  const pid_t stopped = StartStopped();
  // Here, so that the child does not keep the writer's end open.
  if (pipe(ends) != 0) return 1;
  printf("stopped %d\nready\n", stopped);
  fflush(stdout);
  sigsuspend(&none);
  RunAll();
  PrintAll();
  for (;;) pause();
}
