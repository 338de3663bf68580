// SPDX-License-Identifier: Apache-2.0
#include "ksym/cli/known_stack.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "ksym/cli/own_lookups.h"

namespace ksym {
namespace {

constexpr const char* kNotEnoughMemory = "not enough memory";

int Fail(char** argv, const char* why) {
  const char* program = argv[0] == nullptr ? "" : argv[0];
  const char* slash = std::strrchr(program, '/');
  std::fprintf(stderr, "%s: %s\n", slash == nullptr ? program : slash + 1, why);
  return 1;
}

// What an exception that nobody catches ends in, in whichever thread: with
// what the main one would end with.
[[noreturn]] void EndUncaught() {
  std::array<char*, 2> argv = {program_invocation_name, nullptr};
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    ::_exit(Fail(argv.data(), kNotEnoughMemory));
  } catch (const std::exception& error) {
    ::_exit(Fail(argv.data(), error.what()));
  } catch (...) {
    std::abort();
  }
  std::abort();
}

int CallBody(ProgramBody body, int argc, char** argv) {
  try {
    return body(argc, argv);
  } catch (const std::bad_alloc&) {
    return Fail(argv, kNotEnoughMemory);
  } catch (const std::exception& error) {
    return Fail(argv, error.what());
  }
}

struct Call {
  ProgramBody body;
  int argc;
  char** argv;
  int status;
};

void* Run(void* opaque) {
  auto& call = *static_cast<Call*>(opaque);
  call.status = CallBody(call.body, call.argc, call.argv);
  return nullptr;
}

bool HasKnownStack() {
  rlimit limit = {};
  return ::getrlimit(RLIMIT_STACK, &limit) == 0 &&
         limit.rlim_cur >= kKnownStackBytes;
}

// glibc otherwise takes RLIMIT_STACK for each thread. musl has a
// constant of 128 KiB.
void SetStackOfThreads() {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kKnownStackBytes);
  ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
}

}  // namespace

int RunOnKnownStack(ProgramBody body, int argc, char** argv) {
  KeepLookupsInside();
  SetStackOfThreads();
  std::set_terminate(EndUncaught);
  if (HasKnownStack()) return CallBody(body, argc, argv);
  Call call = {body, argc, argv, 1};
  pthread_t thread = {};
  if (const int error = ::pthread_create(&thread, nullptr, Run, &call)) {
    const std::string why = std::strerror(error);
    return Fail(argv, ("no thread with a stack of its own: " + why).c_str());
  }
  // What is sent to the process is for the thread, which may wait for it.
  sigset_t all;
  ::sigfillset(&all);
  // After the thread was made, which would have inherited it
  // (pthread_create(3)).
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  ::pthread_join(thread, nullptr);
  return call.status;
}

}  // namespace ksym
