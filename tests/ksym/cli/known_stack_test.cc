// SPDX-License-Identifier: Apache-2.0
#include "ksym/cli/known_stack.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

namespace ksym {
namespace {

// What the program ends with whose body that is.
[[noreturn]] void RunProgram(ProgramBody body) {
  std::string name = "/usr/bin/program";
  char* argv[] = {name.data(), nullptr};
  std::_Exit(RunOnKnownStack(body, 1, argv));
}

template <typename Exception>
int ThrowInThread(int /*argc*/, char** /*argv*/) {
  std::thread([]() noexcept(false) { throw Exception("why"); }).join();
  return 0;
}

struct NoMemory : std::bad_alloc {
  explicit NoMemory(const char* /*why*/) {}
};

int Throw(int /*argc*/, char** /*argv*/) { throw std::bad_alloc(); }

// Without memory a program ends with status 1 and a line, whichever of its
// threads asked for it.
TEST(KnownStackTest, EndsWithoutMemory) {
  EXPECT_EXIT(RunProgram(Throw), testing::ExitedWithCode(1),
              "^program: not enough memory\n$");
  EXPECT_EXIT(RunProgram(ThrowInThread<NoMemory>), testing::ExitedWithCode(1),
              "^[^/]+: not enough memory\n$");
}

// The same holds for what else a thread throws, with what it says.
TEST(KnownStackTest, EndsWithWhatAThreadThrows) {
  EXPECT_EXIT(RunProgram(ThrowInThread<std::runtime_error>),
              testing::ExitedWithCode(1), "^[^/]+: why\n$");
}

}  // namespace
}  // namespace ksym
