// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that hang in known ways, each under its own name. Says of the locks
 * "NAME ADDRESS" and of processes "NAME PID", then "ready". The argument is a
 * tid of another process, which a forged mutex names as its holder.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "workload.h"

static int foreign_tid;

static void Name(const char* name) { prctl(PR_SET_NAME, name); }
static void SleepForEver(void) {
  const struct timespec time = {3600, 0};
  for (;;) nanosleep(&time, NULL);
}
static void Settle(void) {
  const struct timespec time = {0, 100000000};
  nanosleep(&time, NULL);
}

static NOINLINE void Hang_sleep(void) { SleepForEver(); }

static int ends[2];
static NOINLINE void Hang_pipe(void) {
  char byte;
  if (read(ends[0], &byte, 1) != 1) abort();
}

static NOINLINE void Hang_poll(void) { poll(NULL, 0, -1); }

static pthread_mutex_t condition_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static NOINLINE void Hang_condvar(void) {
  pthread_mutex_lock(&condition_lock);
  for (;;) pthread_cond_wait(&condition, &condition_lock);
}

static NOINLINE void Hang_spin(void) {
  for (;;) Work(1000000);
}

static NOINLINE void Hang_vfork(void) {
  if (vfork() == 0) {
    SleepForEver();
    _exit(0);
  }
}

// The first thread holds a lock and sleeps; the second one wants it and holds
// the next one, which the third thread wants.
static pthread_mutex_t chain[2] = {PTHREAD_MUTEX_INITIALIZER,
                                   PTHREAD_MUTEX_INITIALIZER};
static NOINLINE void Hang_first(void) {
  pthread_mutex_lock(&chain[0]);
  SleepForEver();
}
static NOINLINE void Hang_second(void) {
  pthread_mutex_lock(&chain[1]);
  Settle();
  pthread_mutex_lock(&chain[0]);
}
static NOINLINE void Hang_third(void) {
  Settle();
  pthread_mutex_lock(&chain[1]);
}

static pthread_mutex_t ring[3];
static NOINLINE void Hang_ring(int first) {
  pthread_mutex_lock(&ring[first]);
  Settle();
  pthread_mutex_lock(&ring[(first + 1) % 3]);
}
static NOINLINE void Hang_ring0(void) { Hang_ring(0); }
static NOINLINE void Hang_ring1(void) { Hang_ring(1); }
static NOINLINE void Hang_ring2(void) { Hang_ring(2); }

static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;
static NOINLINE void Hang_self(void) {
  pthread_mutex_lock(&own_lock);
  pthread_mutex_lock(&own_lock);
}

static pthread_mutex_t inheriting;
static NOINLINE void Hang_heir(void) {
  pthread_mutex_lock(&inheriting);
  SleepForEver();
}
static NOINLINE void Hang_wants_heir(void) {
  Settle();
  pthread_mutex_lock(&inheriting);
}

// In memory that a child shares, which holds it.
static pthread_mutex_t* shared_lock;
static NOINLINE void Hang_shared(void) {
  Settle();
  pthread_mutex_lock(shared_lock);
}

// Words that nobody's lock has.
struct Words {
  uint32_t lock, count, owner, users, kind, more[5];
};
static pthread_mutex_t forged[3];
static void Forge(int which, uint32_t owner, uint32_t kind) {
  const struct Words words = {
      .lock = 2, .owner = owner, .users = 1, .kind = kind};
  memcpy(&forged[which], &words, sizeof(words));
}
static NOINLINE void Hang_foreign(void) {
  Forge(0, (uint32_t)foreign_tid, 0);
  pthread_mutex_lock(&forged[0]);
}
static NOINLINE void Hang_nobody(void) {
  Forge(1, 4000000, 0);
  pthread_mutex_lock(&forged[1]);
}
static NOINLINE void Hang_strange(void) {
  Forge(2, (uint32_t)foreign_tid, 0x80);
  pthread_mutex_lock(&forged[2]);
}

struct Kind {
  const char* name;
  void (*hang)(void);
};
static const struct Kind kinds[] = {
    {"sleep", Hang_sleep},
    {"pipe", Hang_pipe},
    {"poll", Hang_poll},
    {"condvar", Hang_condvar},
    {"spin", Hang_spin},
    {"vfork", Hang_vfork},
    {"first", Hang_first},
    {"second", Hang_second},
    {"third", Hang_third},
    {"ring0", Hang_ring0},
    {"ring1", Hang_ring1},
    {"ring2", Hang_ring2},
    {"self", Hang_self},
    {"heir", Hang_heir},
    {"wants_heir", Hang_wants_heir},
    {"shared", Hang_shared},
    {"foreign", Hang_foreign},
    {"nobody", Hang_nobody},
    {"strange", Hang_strange},
    {"twin", Hang_sleep},
    {"twin", Hang_sleep},
    {"twin", Hang_sleep},
};

static void* Run(void* argument) {
  const struct Kind* kind = argument;
  Name(kind->name);
  kind->hang();
  return NULL;
}

static pid_t Fork(const char* name) {
  const pid_t child = fork();
  if (child != 0) return child;
  LimitLife();
  Name(name);
  return 0;
}

int main(int argc, char** argv) {
  LimitLife();
  if (argc != 2 || pipe(ends) != 0) return 2;
  foreign_tid = atoi(argv[1]);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(&inheriting, &attributes);
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  shared_lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutex_init(shared_lock, &attributes);
  const pid_t holder = Fork("holder");
  if (holder == 0) {
    pthread_mutex_lock(shared_lock);
    SleepForEver();
  }
  const pid_t stopped = Fork("stopped");
  if (stopped == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, Run, (void*)&kinds[i]);
  }
  Settle();
  Settle();
  Settle();
  printf("holder %d\nstopped %d\nchain0 %p\nready\n", holder, stopped,
         (void*)&chain[0]);
  fflush(stdout);
  SleepForEver();
}
