// own_stack: works on a stack of three pages between two that cannot be read,
// and lets it begin at each of the last 100 bytes in turn, so that frames lie
// at the edges of pages, and words across them. Compiled without frame
// pointers; who calls whom: _start, ..., main, OnOwnStack, Ping, Pong,
// Ping and so on, 100 in all.

#include <stdlib.h>
#include <sys/mman.h>

#include "workload.h"

#define PAGE 4096
#define STACK_PAGES 3
#define FRAMES 100

// Calls function(argument) on the stack below `top`.
void OnOwnStack(char* top, void (*function)(int), int argument);

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
    ".size OnOwnStack, . - OnOwnStack\n");
#else
void OnOwnStack(char* top, void (*function)(int), int argument) {
  (void)top;
  function(argument);
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

int main(void) {
  LimitLife();
  char* pages = mmap(NULL, (STACK_PAGES + 2) * PAGE, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED ||
      mprotect(pages + PAGE, STACK_PAGES * PAGE, PROT_READ | PROT_WRITE) != 0) {
    abort();
  }
  char* end = pages + (STACK_PAGES + 1) * PAGE;
  SayReady();
  for (int i = 0;; i = (i + 1) % 100) OnOwnStack(end - i, &Ping, FRAMES);
}
