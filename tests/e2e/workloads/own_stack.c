// SPDX-License-Identifier: Apache-2.0
// own_stack: works on a stack of three pages between two that cannot be read,
// and lets it begin at each of the last 100 bytes in turn, so that frames lie
// at the edges of pages, and words across them. Compiled without frame
// pointers; who calls whom: _start, ..., main, OnOwnStack, Ping, Pong,
// Ping and so on, 100 in all. With the argument "untouched" the stack ends just
// above a page that can be read, but was never written; OnOwnStack calls Spin.

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "workload.h"

#define PAGE 4096
#define STACK_PAGES 3
#define FRAMES 100

// Calls function(argument) on the stack below `top`.
void OnOwnStack(char* top, void (*function)(int), int argument);
void Spin(int argument);

#if defined(__x86_64__)
// There the CFA is the word at RSP, plus 16.
__asm__(
    ".text\n"
    ".globl OnOwnStack\n"
    ".type OnOwnStack, @function\n"
    "OnOwnStack:\n"
    ".cfi_startproc\n"
    "  push %rbp\n"
    ".cfi_def_cfa_offset 16\n"
    ".cfi_offset %rbp, -16\n"
    "  mov %rsp, -8(%rdi)\n"
    "  lea -8(%rdi), %rsp\n"
    ".cfi_escape 0x0f, 5, 0x77, 0, 0x06, 0x23, 16\n"
    "  mov %edx, %edi\n"
    "  call *%rsi\n"
    "  pop %rsp\n"
    ".cfi_def_cfa %rsp, 16\n"
    "  pop %rbp\n"
    ".cfi_def_cfa_offset 8\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size OnOwnStack, . - OnOwnStack\n"
    // Needs no stack.
    ".globl Spin\n"
    ".type Spin, @function\n"
    "Spin:\n"
    ".cfi_startproc\n"
    "  mov $1000000, %ecx\n"
    "1:dec %ecx\n"
    "  jnz 1b\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size Spin, . - Spin\n");
#else
void OnOwnStack(char* top, void (*function)(int), int argument) {
  (void)top;
  function(argument);
}
__attribute__((noinline)) void Spin(int argument) {
  (void)argument;
  Work(1000000);
}
#endif

void Pong(int frames);

__attribute__((noinline, noclone)) void Ping(int frames) {
  volatile long room[5];
  room[0] = frames;
  Pong(frames - 1);
  KEEP_FRAME(room[0]);
}

__attribute__((noinline, noclone)) void Pong(int frames) {
  volatile long room[12];
  room[0] = frames;
  if (frames > 1) {
    Ping(frames - 1);
  } else {
    Work(20000);
  }
  KEEP_FRAME(room[0]);
}

int main(int count, char** arguments) {
  LimitLife();
  char* pages = mmap(NULL, (STACK_PAGES + 2) * PAGE, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED ||
      mprotect(pages + PAGE, STACK_PAGES * PAGE, PROT_READ | PROT_WRITE) != 0) {
    abort();
  }
  char* end = pages + (STACK_PAGES + 1) * PAGE;
  SayReady();
  if (count > 1 && strcmp(arguments[1], "untouched") == 0) {
    for (;;) OnOwnStack(end - PAGE + 32, &Spin, 0);
  }
  for (int i = 0;; i = (i + 1) % 100) OnOwnStack(end - i, &Ping, FRAMES);
}
