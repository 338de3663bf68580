// SPDX-License-Identifier: Apache-2.0
/* Another file of the module, with a function of a name that it has. */

extern volatile int g_module_sink;

static __attribute__((used, noinline)) int twin(int value) {
  __asm__ volatile(".fill 8, 1, 0x90");
  return value - g_module_sink;
}

int module_end(void) { return g_module_sink; }
