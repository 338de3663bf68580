// SPDX-License-Identifier: Apache-2.0
/* A kernel module's functions: in .text, inlined, and in .init.text. */

volatile int g_module_sink;

static inline __attribute__((always_inline)) int module_inner(int value) {
  __asm__ volatile(".fill 8, 1, 0x90");
  return value * g_module_sink;
}

__attribute__((noinline)) int module_work(int value) {
  return module_inner(value) + 1;
}

__attribute__((section(".init.text"))) int module_begin(void) {
  __asm__ volatile(".fill 8, 1, 0x90");
  return module_work(g_module_sink);
}

static __attribute__((used, noinline)) int twin(int value) {
  __asm__ volatile(".fill 8, 1, 0x90");
  return value + g_module_sink;
}
