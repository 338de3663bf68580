// SPDX-License-Identifier: Apache-2.0
/* Linked where a kernel is: _stext, a function, and one that is inlined. */

__asm__(
    ".text\n"
    ".globl _stext\n"
    "_stext:\n"
    ".fill 64, 1, 0x90\n");

volatile int g_sink;

static inline __attribute__((always_inline)) int inner(int value) {
  return value * g_sink;
}

__attribute__((noinline)) int do_something(int value) {
  return inner(value) + 1;
}

int _start(void) { return do_something(g_sink); }
