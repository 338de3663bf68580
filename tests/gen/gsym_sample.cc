// SPDX-License-Identifier: Apache-2.0
// What the tests of gen_gsym compile in every way: functions that are inlined
// into each other from two files, templates, a part that gcc splits off, and
// ranges with holes.

#include "gsym_sample.h"

namespace {

// The compiler must not know the value.
int Opaque(int value) {
  asm volatile("" : "+r"(value));
  return value;
}

[[gnu::cold, gnu::noinline]] void Fail(int value) {
  g_sink += value * 3;
  throw value;
}

template <typename T>
struct Box {
  T value;
  [[gnu::always_inline]] T Get() const { return Scale(value) + 1; }
};

[[gnu::always_inline]] inline int Middle(int value) {
  if (Opaque(value) > 1000) Fail(value);
  const Box<int> box = {Opaque(value)};
  int sum = box.Get();
  for (int i = 0; i < value; ++i) {
    if (Opaque(i) == 7) Fail(Scale(i));
    sum += Scale(Opaque(i)) ^ sum;
  }
  return sum;
}

}  // namespace

int g_sink = 0;

[[gnu::noinline]] int Outer(int value) {
  int sum = Middle(value);
  if (Opaque(sum) & 1) sum -= Middle(sum & 15);
  return sum;
}

extern "C" [[gnu::noinline]] int plain_c(int value) {
  return Scale(Opaque(value)) - 2;
}

int main() {
  try {
    g_sink += Outer(3) + plain_c(4);
  } catch (int) {
    return 1;
  }
  return g_sink == 0 ? 2 : 0;
}
