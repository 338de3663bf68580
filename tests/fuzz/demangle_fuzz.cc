// SPDX-License-Identifier: Apache-2.0
// Any bytes as a symbol's name, also with a prefix of each mangling: the
// result is bounded, and so is the time (libFuzzer's -timeout).

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ksym/demangle/demangle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const std::string_view prefix : {"", "_Z", "_R", "_D"}) {
    const std::string name = std::string(prefix) + text;
    if (ksym::Demangle(name).size() > name.size() + ksym::kMaxDemangledBytes) {
      std::abort();
    }
  }
  return 0;
}
