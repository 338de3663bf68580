// SPDX-License-Identifier: Apache-2.0
#pragma once

extern int g_sink;

[[gnu::always_inline]] inline int Scale(int value) {
  int result = value * 7;
  asm volatile("" : "+r"(result));
  return result + g_sink;
}
