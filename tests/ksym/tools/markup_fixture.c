// SPDX-License-Identifier: Apache-2.0
// What the markup tests name: each kind of symbol that a log can point at.
int global_value = 3;
static volatile int local_value = 4;
int zero_values[100];
const int constant_values[7] = {1};

static __attribute__((noinline)) int LocalFunction(int a) {
  return a * local_value + global_value;
}
int GlobalFunction(int a) { return LocalFunction(a) + constant_values[a % 7]; }
int AliasFunction(int) __attribute__((alias("GlobalFunction")));
__attribute__((weak)) int WeakFunction(int a) { return a + zero_values[1]; }
__asm__(
    ".text\n.globl UnsizedFunction\nUnsizedFunction: nop\nnop\nnop\n"
    ".type LastFunction,@function\nLastFunction: nop\nnop\n"
    ".size LastFunction,2\nnop\nnop\n");

int main(int argc, char** argv) {
  (void)argv;
  return GlobalFunction(argc) + WeakFunction(argc);
}
