// SPDX-License-Identifier: Apache-2.0
// forged_python MODE: exports what CPython is known by, of the
// version 3.11, 3.12 or 3.13 as FORGED_MINOR says, and has a thread state that
// lies. MODE is one of kModes; the others depart from honest.

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "workload.h"

// Offsets of that version, in bytes.
#if FORGED_MINOR == 11
enum {
  kHex = 0x030b02f0,
  kKey = 596,
  kThreadFrame = 56,
  kLinkFrame = 8,
  kLinkPrevious = 16,
  kCode = 32,
  kPrevious = 48,
  kEntry = 68,
  kFirstLine = 72,
  kTraceable = 168,
  kUnits = 184,
  kText = 48,
  kThreadId = 152
};
#elif FORGED_MINOR == 12
enum {
  kHex = 0x030c03f0,
  kKey = 1548,
  kThreadFrame = 56,
  kLinkFrame = 0,
  kLinkPrevious = 8,
  kCode = 0,
  kPrevious = 8,
  kOwner = 70,
  kShim = 3,
  kFirstLine = 68,
  kTraceable = 176,
  kUnits = 192,
  kText = 40,
  kThreadId = 136
};
#else
enum {
  kHex = 0x030d05f0,
  kKey = 2164,
  kThreadFrame = 72,
  kCode = 0,
  kPrevious = 8,
  kOwner = 70,
  kShim = 3,
  kFirstLine = 68,
  kTraceable = 184,
  kUnits = 200,
  kText = 40,
  kThreadId = 152
};
#endif
enum {
  kInstruction = 56,
  kType = 8,
  kSize = 16,
  kFile = 112,
  kName = 120,
  kQualified = 128,
  kLines = 136,
  kLength = 16,
  kState = 32,
  kBytes = 32,
  kAscii = 0x64  // one byte a character, compact, ASCII
};
enum { kFrameBytes = 128, kCodeBytes = 256, kMostFrames = 400 };
enum { kArenaBytes = 1 << 24, kPage = 4096, kLongLines = 16000 };

struct {
  uint64_t offsets[3];  // a cookie, the version, whether there is no lock
  char rest[8192];
} _PyRuntime = {.offsets = {0x7970677562656478, kHex, 0}};
char PyCode_Type[512] = {1};
const unsigned long Py_Version = kHex;

static char* arena;
static char* unused;
static char thread_state[1024] __attribute__((aligned(16)));
static char anchor[kFrameBytes] __attribute__((aligned(16)));
#if FORGED_MINOR == 12
// The call of the loop, and what it was called from.
static char links[2][kFrameBytes] __attribute__((aligned(16)));
#endif
static char* frames[kMostFrames];  // the outermost one first
static int frame_count;
static int changes_codes;

static void Put(char* at, uint64_t value) { memcpy(at, &value, 8); }
static void PutPointer(char* at, const char* to) { Put(at, (uintptr_t)to); }
static void PutHalf(char* at, uint32_t value) { memcpy(at, &value, 4); }

static char* Pointer(const char* at) {
  char* to = NULL;
  memcpy(&to, at, sizeof(to));
  return to;
}

static char* New(size_t bytes) {
  char* at = unused;
  unused += (bytes + 15) & ~(size_t)15;
  if (unused > arena + kArenaBytes) abort();
  return at;
}

static char* NewText(const char* text) {
  const size_t length = strlen(text);
  char* object = New(kText + length + 1);
  Put(object + kLength, length);
  PutHalf(object + kState, kAscii);
  memcpy(object + kText, text, length + 1);
  return object;
}

static char* NewLines(size_t bytes) {
  char* object = New(kBytes + bytes);
  Put(object + kLength, bytes);
  memset(object + kBytes, 0xd8, bytes);  // a unit in the short form
  return object;
}

static char* NewCode(const char* name, size_t lines) {
  char* code = New(kCodeBytes);
  PutPointer(code + kType, PyCode_Type);
  Put(code + kSize, 8);
  PutPointer(code + kFile, NewText("forged_file.py"));
  PutPointer(code + kName, NewText(name));
  PutPointer(code + kQualified, NewText(name));
  PutPointer(code + kLines, NewLines(lines));
  PutHalf(code + kFirstLine, 7);
  return code;
}

// Calls from the frame that was made last, with that code.
static void Call(char* code) {
  char* frame = New(kFrameBytes);
  PutPointer(frame + kCode, code);
  if (frame_count) PutPointer(frame + kPrevious, frames[frame_count - 1]);
  PutPointer(frame + kInstruction, code + kUnits + 2);
  frames[frame_count++] = frame;
}

#if FORGED_MINOR != 11
// The frame becomes the one that the thread is in.
static void SetInnermost(const char* frame) {
#if FORGED_MINOR == 12
  PutPointer(links[0] + kLinkFrame, frame);
  PutPointer(links[0] + kLinkPrevious, links[1]);
  frame = links[0];
#endif
  PutPointer(thread_state + kThreadFrame, frame);
}
#endif

// Makes the frames the thread's, with their end where it should be.
static void Enter(char* innermost) {
#if FORGED_MINOR == 11
  frames[0][kEntry] = 1;
  PutPointer(anchor + kLinkFrame, innermost);
  PutPointer(thread_state + kThreadFrame, anchor);
#else
  anchor[kOwner] = kShim;
  PutPointer(frames[0] + kPrevious, anchor);
  SetInnermost(innermost);
#endif
}

static void Honest(void) {
  char* code = NewCode("forged_name", 64);
  for (int i = 0; i < 3; ++i) Call(code);
  Enter(frames[2]);
}

// Lets the outermost frame lead elsewhere, which is no end.
static void LeadTo(uintptr_t to) {
#if FORGED_MINOR == 11
  frames[0][kEntry] = 0;
#endif
  Put(frames[0] + kPrevious, to);
}

static void Loop(void) {
  Honest();
  LeadTo((uintptr_t)frames[2]);
}

// A loop of frames that have not begun, which are not shown.
static void Unfinished(void) {
  Loop();
  PutHalf(Pointer(frames[0] + kCode) + kTraceable, 1000);
}

// Ends of runs without an end.
static void Anchors(void) {
  Honest();
  char* before = NULL;
  for (int i = 0; i < 4096; ++i) {
    char* link = New(kFrameBytes);
#if FORGED_MINOR == 11
    PutPointer(link + kLinkFrame, frames[0]);
    if (before) PutPointer(before + kLinkPrevious, link);
    if (!before) PutPointer(thread_state + kThreadFrame, link);
#else
    link[kOwner] = kShim;
    PutPointer(link + kPrevious, before ? before : link);
    SetInnermost(link);
#endif
    before = link;
  }
}

// A call of the loop whose own frame has not begun, but has one in front of it,
// as what lay there before says.
static void Begins(void) {
  Honest();
  PutPointer(frames[1] + kInstruction, Pointer(frames[1] + kCode) + kUnits - 2);
}

// A call of the loop whose frames are from elsewhere than it is itself.
static void Elsewhere(void) {
  Honest();
#if FORGED_MINOR == 11
  PutPointer(frames[0] + kPrevious, frames[1]);
#elif FORGED_MINOR == 12
  PutPointer(links[1] + kLinkFrame, frames[1]);
#endif
}

// Texts and tables with lengths of 4 GiB and more, in all kinds.
static void Lengths(void) {
  static const uint64_t kLengths[] = {UINT64_C(1) << 32, UINT64_MAX,
                                      UINT64_C(1) << 63, 0x3fffffff, 257};
  for (int i = 0; i < 40; ++i) {
    char* code = NewCode("long_name", 64);
    char* text = Pointer(code + (i & 1 ? kQualified : kFile));
    Put(text + kLength, kLengths[i % 5]);
    PutHalf(text + kState, kAscii ^ (uint32_t)(i / 5 * 4));
    Put(Pointer(code + kLines) + kLength, kLengths[(i + 1) % 5]);
    Put(code + kSize, kLengths[(i + 2) % 5]);
    Call(code);
  }
  Enter(frames[39]);
}

static void Control(void) {
  Honest();
  PutPointer(frames[0] + kCode,
             NewCode("a;b\n\033[31m (x.py) 99\r\t\"\\<i>", 64));
  PutPointer(frames[0] + kInstruction, Pointer(frames[0] + kCode) + kUnits + 2);
}

// The last frame, or its code, is in part on a page that is not there.
static void Unmapped(void) {
  char* page = mmap(NULL, 2 * kPage, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(page + kPage, kPage);
  Honest();
  memcpy(page + kPage - 64, frames[0], 64);
  LeadTo((uintptr_t)page + kPage - 64);
  PutPointer(frames[0] + kCode, page + kPage - 40);
}

static void Kernel(void) {
  Honest();
  LeadTo(UINT64_C(0xffff888000001000));
  Put(frames[1] + kCode, UINT64_C(0xffffffff81000000));
}

static void Noncanonical(void) {
  Honest();
  LeadTo(UINT64_C(0x8000000000000000));
  Put(Pointer(frames[1] + kCode) + kQualified, UINT64_C(0x7ffffffffffffff8));
}

static void State(void) {
  Honest();
  Put(thread_state + kThreadFrame, UINT64_C(0x7ffffffffffffff8));
}

// Other code in each sample, with much to be read of it.
static void Codes(void) {
  for (int i = 0; i < kMostFrames; ++i) {
    char name[16];
    snprintf(name, sizeof(name), "code_%d", i);
    Call(NewCode(name, kLongLines));
  }
  Enter(frames[kMostFrames - 1]);
  changes_codes = 1;
}

static void* Change(void* unused_argument) {
  uint64_t seed = 1;
  for (;;) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    char* at = arena + (seed >> 33) % kPage / 8 * 8;
    const uint64_t to = (uintptr_t)arena + (seed >> 20) % kPage / 8 * 8;
    Put(at, seed & 1 ? seed : to);
    if ((seed >> 20) % 4096 == 0) {
      madvise(arena, kPage, MADV_DONTNEED);
      mprotect(arena, kPage, PROT_NONE);
      mprotect(arena, kPage, PROT_READ | PROT_WRITE);
    }
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
} kModes[] = {{"honest", Honest},
              {"loop", Loop},
              {"unfinished", Unfinished},
              {"anchors", Anchors},
              {"begins", Begins},
              {"elsewhere", Elsewhere},
              {"lengths", Lengths},
              {"control", Control},
              {"unmapped", Unmapped},
              {"kernel", Kernel},
              {"noncanonical", Noncanonical},
              {"state", State},
              {"codes", Codes},
              {"changing", Changing}};

void Hot(void) {
  static uint32_t line;
  Work(20000);
  if (!changes_codes) return;
  ++line;
  for (int i = 0; i < frame_count; ++i) {
    PutHalf(Pointer(frames[i] + kCode) + kFirstLine, line);
  }
}

// The part of the stack that `room` is in is that of the evaluation loop.
void Evaluate(char* room) {
  memcpy(room, anchor, sizeof(anchor));
#if FORGED_MINOR == 11
  if (Pointer(thread_state + kThreadFrame) == anchor) {
    PutPointer(thread_state + kThreadFrame, room);
  }
#else
  if (frame_count && Pointer(frames[0] + kPrevious) == anchor) {
    PutPointer(frames[0] + kPrevious, room);
  }
#endif
  SayReady();
  for (;;) Hot();
}

static void Stand(const struct Mode* mode) {
  char room[kFrameBytes] __attribute__((aligned(16)));
  pthread_key_t key;
  pthread_key_create(&key, NULL);
  PutHalf((char*)&_PyRuntime + kKey, key);
  Put(thread_state + kThreadId, (uintptr_t)pthread_self());
  mode->make();
  pthread_setspecific(key, thread_state);
  Evaluate(room);
}

int main(int argc, char** argv) {
  LimitLife();
  arena = mmap(NULL, kArenaBytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  unused = arena;
  for (size_t i = 0; i < sizeof(kModes) / sizeof(*kModes); ++i) {
    if (argc == 2 && !strcmp(argv[1], kModes[i].name)) Stand(&kModes[i]);
  }
  fprintf(stderr, "usage: forged_python MODE\n");
  return 2;
}
