// SPDX-License-Identifier: Apache-2.0
// forged_v8 MODE: exports what V8 is known by, of version 11.3, and runs code
// that it made at run time in a frame as V8's functions have them, whose words
// lead to objects that lie. MODE is one of kModes; all but honest depart from
// the truth.

#include "../../ksym/runtime/forged_v8.c"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "workload.h"

enum { kArenaBytes = 1 << 20, kPage = 4096 };
enum { kMap = 255, kFunctionType = 2066, kScript = 167, kScope = 261 };
enum { kCode = 245, kStream = 252, kArray = 175, kBytes = 190, kText = 40 };
enum { kCons = 41, kBytecode = 191, kTypes = 4096 };

static char* arena;
static char* unused;
static char* maps[kTypes];
static char* code_page;  // an object of code, with instructions behind it
static char* function;
static char* shared;
static char* scope;
static char* script;
static char* code;
static int makes_scripts;

static void Put(char* at, uint64_t value) { memcpy(at, &value, 8); }
static void PutHalf(char* at, uint32_t value) { memcpy(at, &value, 4); }
static uint64_t Tagged(const char* object) { return (uintptr_t)object | 1; }
static uint64_t Smi(uint64_t value) { return value << 32; }

static char* Bytes(size_t bytes) {
  char* at = unused;
  unused += (bytes + 31) & ~(size_t)31;
  if (unused > arena + kArenaBytes) abort();
  return at;
}

static char* MapOf(int type) {
  if (maps[type]) return maps[type];
  maps[type] = Bytes(64);
  Put(maps[type], Tagged(type == kMap ? maps[type] : MapOf(kMap)));
  maps[type][12] = (char)(type & 0xff);
  maps[type][13] = (char)(type >> 8);
  return maps[type];
}

static char* New(int type, size_t bytes) {
  char* object = Bytes(bytes);
  Put(object, Tagged(MapOf(type)));
  return object;
}

static char* NewText(const char* text) {
  const size_t length = strlen(text);
  char* object = New(kText, 16 + length);
  PutHalf(object + 12, (uint32_t)length);
  memcpy(object + 16, text, length);
  return object;
}

static char* NewArray(int type, size_t length, size_t bytes) {
  char* object = New(type, 16 + bytes);
  Put(object + 8, Smi(length));
  return object;
}

static void Name(char* name) { Put(scope + 32, Tagged(name)); }

static void Honest(void) {
  script = New(kScript, 104);
  Put(script + 8, Tagged(NewText("line\nline\n")));
  Put(script + 16, Tagged(NewText("/srv/forged_file.js")));
  Put(script + 64, Smi(7));
  scope = New(kScope, 128);
  Put(scope + 8, Smi(2 | 3 << 12));
  Name(NewText("forged_name"));
  shared = New(SHARED, 64);
  Put(shared + 16, Tagged(scope));
  Put(shared + 32, Tagged(script));
  PutHalf(shared + 52, 3);
  function = New(kFunctionType, 64);
  Put(function + 24, Tagged(shared));
  // Positions, inlined calls and functions are all empty.
  char* data = NewArray(kArray, 10, 80);
  Put(data + 16 + 8 * 6, Tagged(shared));
  code = New(kCode, 96);
  Put(code + 16, Tagged(data));
  Put(code + 24, Tagged(NewArray(kBytes, 0, 0)));
  Put(code + 40, (uintptr_t)code_page + 16);
  PutHalf(code + 48, 0x7d);
  PutHalf(code + 56, 1024);
  Put(code_page, Tagged(MapOf(kStream)));
  Put(code_page + 8, Tagged(code));
}

// A name that is made of itself.
static void Loop(void) {
  Honest();
  char* name = New(kCons, 32);
  PutHalf(name + 12, 100);
  Put(name + 16, Tagged(name));
  Put(name + 24, Tagged(name));
  Name(name);
}

static void Lengths(void) {
  Honest();
  char* name = NewText("forged_name");
  PutHalf(name + 12, 0xffffffff);
  Name(name);
  Put(script + 8, Tagged(name));
  Put(code + 24, Tagged(NewArray(kBytes, 0x7fffffff, 0)));
}

// More variables than there is memory.
static void Variables(void) {
  Honest();
  Put(scope + 24, Smi(0x7fffffff));
}

static void Control(void) {
  Honest();
  Name(NewText("forged_name;\n\033[31m (x.js) 99\r\t\"\\<i>"));
  Put(script + 16, Tagged(NewText("/srv/a;b\n\033[31m.js")));
}

static void Unmapped(void) {
  Honest();
  char* page = mmap(NULL, 2 * kPage, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(page + kPage, kPage);
  memcpy(page + kPage - 40, shared, 40);
  Put(function + 24, Tagged(page + kPage - 40));
}

static void Kernel(void) {
  Honest();
  Put(shared + 16, UINT64_C(0xffff888000001001));
  Put(shared + 32, UINT64_C(0xffffffff81000001));
}

// The code is of another function.
static void Other(void) {
  Honest();
  char* other = Bytes(64);
  memcpy(other, shared, 64);
  Put(function + 24, Tagged(other));
}

// The code's table of inlined calls has one that is inlined into itself.
static void Inlined(void) {
  Honest();
  char* data = NewArray(kArray, 10, 80);
  char* calls = NewArray(kBytes, 16, 16);
  char* literals = NewArray(kArray, 1, 8);
  char* positions = NewArray(kBytes, 8, 8);
  Put(calls + 16, UINT64_C(0x80000002));
  Put(literals + 16, Tagged(shared));
  // At 0, of the call with the number 0.
  memcpy(positions + 16, "\x00\x84\x80\x80\x80\x10\x00\x00", 8);
  Put(data + 16 + 8 * 2, Tagged(literals));
  Put(data + 16 + 8 * 6, Tagged(shared));
  Put(data + 16 + 8 * 7, Tagged(calls));
  Put(code + 16, Tagged(data));
  Put(code + 24, Tagged(positions));
}

// Another function in each sample.
static void Functions(void) {
  Honest();
  makes_scripts = 1;
}

static void* Change(void* unused_argument) {
  uint64_t seed = 1;
  for (;;) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    char* at = arena + (seed >> 33) % (2 * kPage) / 8 * 8;
    const uint64_t to = Tagged(arena + (seed >> 20) % (2 * kPage) / 32 * 32);
    // The frame's own words stay.
    if (at < function || at >= function + 8) Put(at, seed & 1 ? seed : to);
  }
  return unused_argument;
}

static void Changing(void) {
  pthread_t thread;
  Honest();
  pthread_create(&thread, NULL, Change, NULL);
}

static const struct Mode {
  const char* name;
  void (*make)(void);
} kModes[] = {
    {"honest", Honest},       {"loop", Loop},        {"lengths", Lengths},
    {"variables", Variables}, {"control", Control},  {"unmapped", Unmapped},
    {"kernel", Kernel},       {"other", Other},      {"inlined", Inlined},
    {"functions", Functions}, {"changing", Changing}};

void Hot(void) {
  static uint32_t number = 8;
  Work(20000);
  if (makes_scripts) Put(script + 64, Smi(number++));
}

NOINLINE void Evaluate(void) {
  SayReady();
  for (;;) Hot();
}

// push %rbp; mov %rsp,%rbp; push %rdi, %rsi, %rax, %rdx, %rcx; sub $8,%rsp;
// call *%r8; leave; ret
static const unsigned char kFrame[] = {0x55, 0x48, 0x89, 0xe5, 0x57, 0x56,
                                       0x50, 0x52, 0x51, 0x48, 0x83, 0xec,
                                       0x08, 0x41, 0xff, 0xd0, 0xc9, 0xc3};

int main(int argc, char** argv) {
  LimitLife();
  arena = mmap(NULL, kArenaBytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  unused = arena;
  code_page = mmap(NULL, kPage, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code_page + 16, kFrame, sizeof(kFrame));
  void (*enter)(uint64_t, uint64_t, uint64_t, uint64_t, void (*)(void)) = NULL;
  char* begin = code_page + 16;
  memcpy(&enter, &begin, sizeof(enter));
  for (size_t i = 0; i < sizeof(kModes) / sizeof(*kModes); ++i) {
    if (argc != 2 || strcmp(argv[1], kModes[i].name)) continue;
    kModes[i].make();
    enter(Tagged(script), Tagged(function), 0, 0, Evaluate);
  }
  fprintf(stderr, "usage: forged_v8 MODE\n");
  return 2;
}
