/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that says that it is a JVM and lies, in one of these ways:
 *
 *   endless   its tables have no end
 *   hops      its map of code leads back for ever
 *   frames    its code has frames of 0 bytes, below each other
 *   names     its methods' names are anywhere
 *   silent    its map of code is memory that never answers
 *
 * It works in code that it made, until it is killed; with "sleep" as well, 50
 * threads sleep below that code instead.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default"), used))

struct field {
  const char *type, *name, *text;
  int32_t is_static;
  uint64_t offset;
  void* address;
};
struct type {
  const char *name, *super;
  int32_t is_oop, is_integer, is_unsigned;
  uint64_t size;
};

#define HEAP_BYTES 65536
static char object[512];
static void *heap_array, *interpreter = object, *heaps[1];
static struct {
  int32_t length, reserved;
  void** data;
} array;

static struct field endless[8192];
static struct field fields[] = {
    {"GrowableArrayBase", "_len", 0, 0, 0, 0},
    {"GrowableArray<int>", "_data", 0, 0, 8, 0},
    {"VirtualSpace", "_low", 0, 0, 16, 0},
    {"VirtualSpace", "_low_boundary", 0, 0, 0, 0},
    {"VirtualSpace", "_high_boundary", 0, 0, 8, 0},
    {"CodeHeap", "_memory", 0, 0, 8, 0},
    {"CodeHeap", "_segmap", 0, 0, 120, 0},
    {"CodeHeap", "_log2_segment_size", 0, 0, 256, 0},
    {"CodeBlob", "_name", 0, 0, 96, 0},
    {"CodeBlob", "_size", 0, 0, 12, 0},
    {"CodeBlob", "_frame_size", 0, 0, 28, 0},
    {"CodeBlob", "_frame_complete_offset", 0, 0, 20, 0},
    {"CodeBlob", "_code_begin", 0, 0, 32, 0},
    {"CodeBlob", "_code_end", 0, 0, 40, 0},
    {"CompiledMethod", "_method", 0, 0, 112, 0},
    {"nmethod", "_compile_id", 0, 0, 304, 0},
    {"Method", "_constMethod", 0, 0, 8, 0},
    {"ConstMethod", "_constants", 0, 0, 8, 0},
    {"ConstMethod", "_name_index", 0, 0, 34, 0},
    {"ConstMethod", "_code_size", 0, 0, 32, 0},
    {"ConstantPool", "_length", 0, 0, 60, 0},
    {"ConstantPool", "_pool_holder", 0, 0, 24, 0},
    {"Klass", "_name", 0, 0, 24, 0},
    {"Symbol", "_length", 0, 0, 4, 0},
    {"Symbol", "_body", 0, 0, 6, 0},
    {"CodeCache", "_heaps", 0, 1, 0, &heap_array},
    {"AbstractInterpreter", "_code", 0, 1, 0, &interpreter},
    {0, 0, 0, 0, 0, 0},
};
static struct type types[] = {
    {"HeapBlock", 0, 0, 0, 0, 16},
    {"ConstMethod", 0, 0, 0, 0, 56},
    {"ConstantPool", 0, 0, 0, 0, 72},
    {0, 0, 0, 0, 0, 0},
};

EXPORT struct field* gHotSpotVMStructs = fields;
EXPORT struct type* gHotSpotVMTypes = types;
EXPORT uint64_t gHotSpotVMStructEntryArrayStride = sizeof(struct field);
EXPORT uint64_t gHotSpotVMStructEntryTypeNameOffset;
EXPORT uint64_t gHotSpotVMStructEntryFieldNameOffset = 8;
EXPORT uint64_t gHotSpotVMStructEntryOffsetOffset = 32;
EXPORT uint64_t gHotSpotVMStructEntryAddressOffset = 40;
EXPORT uint64_t gHotSpotVMTypeEntryArrayStride = sizeof(struct type);
EXPORT uint64_t gHotSpotVMTypeEntryTypeNameOffset;
EXPORT uint64_t gHotSpotVMTypeEntrySizeOffset = 32;

static void put(char* at, uint64_t value, size_t bytes) {
  memcpy(at, &value, bytes);
}

/* 0: there is no such memory here. */
static char* silent_memory(size_t bytes) {
  int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct uffdio_api api = {.api = UFFD_API};
  struct uffdio_register range = {
      .range = {.start = (uint64_t)(uintptr_t)memory, .len = bytes},
      .mode = UFFDIO_REGISTER_MODE_MISSING};

  if (fd < 0 || memory == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) ||
      ioctl(fd, UFFDIO_REGISTER, &range))
    return NULL;
  return memory;
}

static void sleep_for_ever(void) {
  for (;;) pause();
}

static void* begin_sleep(void* code) {
  void (*calls)(void (*)(void)) = (void (*)(void (*)(void)))(uintptr_t)code;

  calls(sleep_for_ever);
  return NULL;
}

int main(int count, char** arguments) {
  const char* mode = count > 1 ? arguments[1] : "endless";
  /* mov %rdi,%rcx; 1: loop 1b; ret */
  static const unsigned char code[] = {0x48, 0x89, 0xf9, 0xe2, 0xfe, 0xc3};
  /* push %rbp; call *%rdi; pop %rbp; ret */
  static const unsigned char calling[] = {0x55, 0xff, 0xd7, 0x5d, 0xc3};
  static char answering[HEAP_BYTES / 128];
  char* segments = answering;
  int is_silent = strcmp(mode, "silent") == 0;
  char* memory = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* blob = memory + 16;
  char* begin = memory + 16384 + 64;
  int leads_back = strcmp(mode, "hops") == 0;

  if (memory == MAP_FAILED) return 1;
  if (is_silent) segments = silent_memory(4096);
  if (!segments) {
    puts("none\nready");
    return 0;
  }
  memcpy(begin, code, sizeof(code));
  memcpy(begin + 64, calling, sizeof(calling));
  if (strcmp(mode, "endless") == 0) {
    for (int i = 0; i < 8192; i++) endless[i] = fields[0];
    gHotSpotVMStructs = endless;
  }
  array.length = 1;
  array.data = heaps;
  heaps[0] = object;
  heap_array = &array;
  put(object + 8, (uint64_t)(uintptr_t)memory, 8);
  put(object + 16, (uint64_t)(uintptr_t)memory + HEAP_BYTES, 8);
  put(object + 136, (uint64_t)(uintptr_t)segments, 8);
  put(object + 256, 7, 4);
  for (int i = 0; !is_silent && i < HEAP_BYTES / 128; i++)
    segments[i] = (char)(leads_back ? i > 0 : i < 250 ? i : 249);
  put(blob + 96, (uint64_t)(uintptr_t)"nmethod", 8);
  put(blob + 28, strcmp(mode, "frames") == 0 ? 0 : 1, 4);
  put(blob + 32, (uint64_t)(uintptr_t)memory, 8);
  put(blob + 40, (uint64_t)(uintptr_t)memory + HEAP_BYTES, 8);
  put(blob + 112, 0x1122334455667788, 8);
  for (int i = 0; count > 2 && i < 50; i++) {
    pthread_t thread;

    if (pthread_create(&thread, NULL, begin_sleep, begin + 64)) return 1;
  }
  puts("ready");
  fflush(stdout);
  if (count > 2) sleep_for_ever();
  for (;;) {
    void (*work)(uint64_t) = (void (*)(uint64_t))(uintptr_t)begin;

    work(1000000);
  }
}
