// SPDX-License-Identifier: Apache-2.0
// Any bytes as a symbol's name, also with a prefix of each mangling: the
// result is bounded, and so is the time.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "ksym/demangle/demangle.h"

namespace {

// Far more than any name takes, and far less than libFuzzer's -timeout, which
// only a machine with nothing else to do lets be short.
constexpr double kMaxSeconds = 0.5;

double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const std::string_view prefix : {"", "_Z", "_R", "_D"}) {
    const std::string name = std::string(prefix) + text;
    const double begin = CpuSeconds();
    if (ksym::Demangle(name).size() > name.size() + ksym::kMaxDemangledBytes) {
      std::abort();
    }
    if (CpuSeconds() - begin > kMaxSeconds) std::abort();
  }
  return 0;
}
