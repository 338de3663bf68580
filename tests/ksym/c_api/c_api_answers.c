// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L  // fork and others, in C11

// What ksym_resolve says of this program's own code.

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "ksym/ksym.h"

static volatile int sink;

static inline __attribute__((always_inline)) void inner(int n) {
  for (int i = 0; i < n; ++i) sink += i;
}

__attribute__((noinline)) void outer_of_test(int n) { inner(n); }

// An address of outer_of_test whose line is in inner().
static uint64_t find_inlined(ksym_source* source) {
  const uint64_t start = (uint64_t)(uintptr_t)outer_of_test;
  for (uint64_t address = start; address < start + 64; ++address) {
    struct ksym_symbol symbol = {.size = sizeof(symbol)};
    CHECK(ksym_resolve(source, address, 0, &symbol) == KSYM_OK);
    if (symbol.frame_count == 2) return address;
  }
  return 0;
}

// A process's addresses have names, and with KSYM_INLINES inlined calls with
// lines.
static void test_own_process(void) {
  const struct ksym_options options = {.size = sizeof(options),
                                       .flags = KSYM_INLINES};
  ksym_source* source = NULL;
  CHECK(ksym_open_process((uint32_t)getpid(), &options, &source) == KSYM_OK);
  if (source == NULL) return;
  outer_of_test(3);
  const uint64_t address = find_inlined(source);
  CHECK(address != 0);
  struct ksym_symbol symbol = {.size = sizeof(symbol)};
  CHECK(ksym_resolve(source, address, 0, &symbol) == KSYM_OK);
  CHECK(symbol.frame_count == 2);
  if (symbol.frame_count == 2) {
    CHECK_TEXT(ksym_frame_at(source, 0)->function, "inner");
    CHECK_TEXT(ksym_frame_at(source, 1)->function, "outer_of_test");
    CHECK_TEXT(ksym_frame_at(source, 0)->file, "c_api_answers.c");
    CHECK(ksym_frame_at(source, 0)->line != 0);
    CHECK(ksym_frame_at(source, 2) == NULL);
  }
  CHECK_TEXT(symbol.reason, "");
  CHECK(symbol.start == (uint64_t)(uintptr_t)outer_of_test);
  CHECK(symbol.offset == address - symbol.start);
  ksym_close(source);
}

// A return address behind a function's last byte is the function's; an address
// that is not mapped has no name, and a reason.
static void test_return_address_and_reason(void) {
  ksym_source* source = NULL;
  CHECK(ksym_open_process((uint32_t)getpid(), NULL, &source) == KSYM_OK);
  if (source == NULL) return;
  const uint64_t start = (uint64_t)(uintptr_t)outer_of_test;
  struct ksym_symbol symbol = {.size = sizeof(symbol)};
  CHECK(ksym_resolve(source, start, 0, &symbol) == KSYM_OK);
  CHECK(symbol.frame_count == 1 && symbol.offset == 0);
  CHECK_TEXT(ksym_frame_at(source, 0)->function, "outer_of_test");
  CHECK(ksym_frame_at(source, 0)->line == 0);
  CHECK(ksym_resolve(source, start + 1, KSYM_RETURN_ADDRESS, &symbol) ==
        KSYM_OK);
  CHECK(symbol.frame_count == 1 && symbol.offset == 1);
  CHECK(ksym_resolve(source, start, KSYM_RETURN_ADDRESS, &symbol) == KSYM_OK);
  CHECK(symbol.frame_count == 0 || symbol.start != start);
  CHECK(ksym_resolve(source, 1, 0, &symbol) == KSYM_OK);
  CHECK(symbol.frame_count == 0 && symbol.start == 0);
  CHECK_TEXT(symbol.reason, "unmapped");
  CHECK(ksym_frame_at(source, 0) == NULL);
  ksym_close(source);
}

// A process that has ended says so, at once or at the next address.
static void test_gone_process(void) {
  const pid_t pid = fork();
  if (pid == 0) pause();
  ksym_source* source = NULL;
  CHECK(ksym_open_process((uint32_t)pid, NULL, &source) == KSYM_OK);
  kill(pid, SIGKILL);
  CHECK(waitpid(pid, NULL, 0) == pid);
  struct ksym_symbol symbol = {.size = sizeof(symbol)};
  CHECK(ksym_resolve(source, 1, 0, &symbol) == KSYM_OK);
  CHECK_TEXT(symbol.reason, "no-process");
  ksym_close(source);
  CHECK(ksym_open_process((uint32_t)pid, NULL, &source) == KSYM_NOT_FOUND);
  CHECK(source == NULL);
}

// A file's addresses are those of its headers; its build-id is the process's.
static void test_file(const char* program) {
  const struct ksym_options options = {.size = sizeof(options),
                                       .flags = KSYM_INLINES};
  ksym_source* process = NULL;
  ksym_source* file = NULL;
  CHECK(ksym_open_process((uint32_t)getpid(), NULL, &process) == KSYM_OK);
  CHECK(ksym_open_file(program, &options, &file) == KSYM_OK);
  if (process == NULL || file == NULL) return;
  extern char __executable_start;  // address 0 of a program that can be moved
  const uint64_t base = (uint64_t)(uintptr_t)&__executable_start;
  const uint64_t start = (uint64_t)(uintptr_t)outer_of_test;
  struct ksym_symbol of_process = {.size = sizeof(of_process)};
  struct ksym_symbol of_file = {.size = sizeof(of_file)};
  CHECK(ksym_resolve(process, start + 2, 0, &of_process) == KSYM_OK);
  CHECK(ksym_resolve(file, start + 2 - base, 0, &of_file) == KSYM_OK);
  CHECK(of_file.frame_count >= 1 && of_file.start == start - base);
  CHECK_TEXT(of_file.module, program);
  CHECK_TEXT(of_file.build_id, of_process.build_id);
  const struct ksym_frame* frame = ksym_frame_at(file, of_file.frame_count - 1);
  CHECK_TEXT(frame->function, "outer_of_test");
  CHECK_TEXT(frame->file, "c_api_answers.c");
  ksym_close(process);
  ksym_close(file);
}

// The kernel's symbols come from the listing that is given.
static void test_kernel(void) {
  char path[] = "/tmp/ksym-c-api-XXXXXX";
  const int fd = mkstemp(path);
  FILE* listing = fdopen(fd, "w");
  fputs(
      "ffffffff81000000 T _stext\n"
      "ffffffff81000100 T do_something\n"
      "ffffffff81000200 T _etext\n",
      listing);
  fclose(listing);
  const struct ksym_options options = {.size = sizeof(options),
                                       .kernel_symbols = path};
  ksym_source* source = NULL;
  CHECK(ksym_open_kernel(&options, &source) == KSYM_OK);
  struct ksym_symbol symbol = {.size = sizeof(symbol)};
  if (source != NULL) {
    CHECK(ksym_resolve(source, 0xffffffff81000110, 0, &symbol) == KSYM_OK);
    CHECK(symbol.frame_count == 1 && symbol.offset == 0x10);
    CHECK_TEXT(ksym_frame_at(source, 0)->function, "do_something");
    CHECK_TEXT(symbol.module, "[kernel]");
  }
  ksym_close(source);
  unlink(path);
}

void test_answers(const char* program) {
  test_own_process();
  test_return_address_and_reason();
  test_gone_process();
  test_file(program);
  test_kernel();
}
