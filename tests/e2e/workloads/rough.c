// SPDX-License-Identifier: Apache-2.0
// rough WHAT: makes its stacks and mappings hard to follow while it is
// sampled.
//   maps N      calls through N executable mappings, each with its own code
//   unmap       takes the code away under its callers, again and again
//   scribble    overwrites return addresses and saved registers above it
//   reload FILE dlopen and dlclose of FILE, as often as it can
//   context     works on the stack of a makecontext() with eight arguments
//   clones      starts threads and processes that do nothing
//   gaps        works below two frames of 50 KiB that were never written to,
//               for 10 ms of CPU time, then ends
//   handlers    two threads work in signal handlers on stacks of their own, for
//               10 ms of CPU time, then it ends
//   large WHO   works under 100 KiB of frames for its first half second of CPU
//               time, then ends; WHO is first or thread

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

#include "workload.h"

#define PAGE 4096

typedef void Function(void);

// push %rbp; mov %rsp,%rbp; mov $N,%ecx; 1: dec %ecx; jnz 1b; pop %rbp; ret
static void WriteCode(unsigned char* page) {
  static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xb9,
                                       0x00, 0x04, 0x00, 0x00, 0xff,
                                       0xc9, 0x75, 0xfc, 0x5d, 0xc3};
  memcpy(page, code, sizeof(code));
}

static unsigned char* NewCode(void) {
  unsigned char* page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) abort();
  WriteCode(page);
  // A gap, or the kernel would make one mapping of all.
  mprotect(page + PAGE, PAGE, PROT_NONE);
  return page;
}

NOINLINE static void Maps(long count) {
  Function** functions = calloc((size_t)count, sizeof(*functions));
  for (long i = 0; i < count; ++i) functions[i] = (Function*)NewCode();
  SayReady();
  for (long i = 0;; ++i) functions[i % count]();
}

NOINLINE static void Unmap(void) {
  SayReady();
  for (;;) {
    unsigned char* page = NewCode();
    for (int i = 0; i < 50; ++i) ((Function*)page)();
    munmap(page, 2 * PAGE);
  }
}

NOINLINE static void Smear(volatile uintptr_t* words, uintptr_t seed) {
  uintptr_t saved[24];
  for (int i = 0; i < 24; ++i) saved[i] = words[i];
  for (int i = 0; i < 24; ++i)
    words[i] = seed * 0x9e3779b97f4a7c15u >> (i & 31);
  Work(20000);
  for (int i = 0; i < 24; ++i) words[i] = saved[i];
}

NOINLINE static void Scribble(void) {
  SayReady();
  for (uintptr_t seed = 1;; ++seed) {
    volatile uintptr_t here[2] = {seed, seed};
    Smear(here, seed);
  }
}

NOINLINE static void Reload(const char* file) {
  SayReady();
  for (;;) {
    void* library = dlopen(file, RTLD_NOW);
    if (library == NULL) abort();
    dlclose(library);
  }
}

NOINLINE static void WorkInContext(void) {
  for (;;) Work(20000);
}

static void OnContext(int a, int b, int c, int d, int e, int f, long g,
                      long h) {
  SayReady();
  if (g == h && a + b + c + d + e + f > 0) WorkInContext();
}

// The arguments on its stack look like return addresses.
NOINLINE static void Context(void) {
  static char stack[1 << 16];
  static ucontext_t context, back;
  if (getcontext(&context) != 0) abort();
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = sizeof(stack);
  context.uc_link = &back;
  makecontext(&context, (void (*)(void))OnContext, 8, 1, 1, 1, 1, 1, 1,
              (intptr_t)&Unmap + 9, (intptr_t)&Unmap + 9);
  swapcontext(&back, &context);
}

static void* Nothing(void* unused) { return unused; }

NOINLINE static void StartThread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, Nothing, NULL) != 0) abort();
  pthread_join(thread, NULL);
}

NOINLINE static void StartProcess(void) {
  static char name[] = "true";
  char* arguments[] = {name, NULL};
  pid_t pid = 0;
  if (posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, NULL) != 0) abort();
  waitpid(pid, NULL, 0);
}

NOINLINE static void Clones(void) {
  SayReady();
  for (int i = 1;; ++i) {
    StartThread();
    if (i % 20 == 0) StartProcess();
  }
}

static double Seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

NOINLINE static char Descend(int frames, double end) {
  volatile char large[4096];
  large[0] = (char)frames;
  if (frames > 1) return Descend(frames - 1, end) + large[0];
  while (Seconds() < end) Work(20000);
  return large[0];
}

NOINLINE static void WorkUntil(double end) {
  while (Seconds() < end) Work(20000);
}

// A variable that is only written to where the compiler cannot know it.
NOINLINE static char Gap(double end) {
  volatile char large[50 << 10];
  if (end < 0) large[(int)-end] = 1;
  WorkUntil(end);
  return end < 0 ? large[1] : 0;
}

NOINLINE static char Gaps(void) {
  const double end = Seconds() + 0.01;
  volatile char large[50 << 10];
  if (end < 0) large[(int)-end] = 1;
  const char inner = Gap(end);
  return end < 0 ? large[1] : inner;
}

static void OnSignal(int signal) {
  (void)signal;
  WorkUntil(Seconds() + 0.002);
}

// A thread's signal is on the stack that the thread has for it.
NOINLINE static void* Interrupted(void* unused) {
  stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
  if (stack.ss_sp == NULL || sigaltstack(&stack, NULL) != 0) abort();
  while (Seconds() < 0.01) raise(SIGUSR1);
  return unused;
}

NOINLINE static int Handlers(void) {
  struct sigaction action = {.sa_handler = OnSignal, .sa_flags = SA_ONSTACK};
  pthread_t thread;
  if (sigaction(SIGUSR1, &action, NULL) != 0 ||
      pthread_create(&thread, NULL, Interrupted, NULL) != 0) {
    abort();
  }
  Interrupted(NULL);
  pthread_join(thread, NULL);
  return 0;
}

static void* Large(void* unused) {
  Descend(25, Seconds() + 0.5);
  return unused;
}

static void LargeIn(const char* who) {
  pthread_t thread;
  if (strcmp(who, "first") == 0) {
    Large(NULL);
  } else if (pthread_create(&thread, NULL, Large, NULL) == 0) {
    pthread_join(thread, NULL);
  }
  exit(0);
}

int main(int argc, char** argv) {
  LimitLife();
  if (argc < 2) return 2;
  if (strcmp(argv[1], "maps") == 0) Maps(strtol(argv[2], NULL, 10));
  if (strcmp(argv[1], "unmap") == 0) Unmap();
  if (strcmp(argv[1], "scribble") == 0) Scribble();
  if (strcmp(argv[1], "reload") == 0) Reload(argv[2]);
  if (strcmp(argv[1], "context") == 0) Context();
  if (strcmp(argv[1], "clones") == 0) Clones();
  if (strcmp(argv[1], "gaps") == 0) return Gaps();
  if (strcmp(argv[1], "handlers") == 0) return Handlers();
  if (strcmp(argv[1], "large") == 0) LargeIn(argv[2]);
  return 2;
}
