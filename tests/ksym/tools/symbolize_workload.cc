// SPDX-License-Identifier: Apache-2.0
// A program with functions to name: prints their run-time addresses, loads the
// library that a line of its input names and prints the address of its
// function, and ends with its input.

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace workload {

[[gnu::noinline]] int Twice(int value) { return 2 * value; }

}  // namespace workload

int main() {
  std::printf("%p\n", reinterpret_cast<void*>(&workload::Twice));
  std::fflush(stdout);
  char line[4096];
  while (std::fgets(line, sizeof(line), stdin) != nullptr) {
    line[std::strcspn(line, "\n")] = '\0';
    void* library = ::dlopen(line, RTLD_NOW);
    std::printf("%p\n", library == nullptr
                            ? nullptr
                            : ::dlsym(library, "fixture_global"));
    std::fflush(stdout);
  }
  return 0;
}
