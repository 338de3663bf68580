// SPDX-License-Identifier: Apache-2.0
// Any text as a perf map, once whole and once torn at a place that the first
// byte chooses: both give the same names.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ksym/process/perf_map.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1,
                              size - 1);
  const size_t cut = text.size() * data[0] / 255;
  ksym::PerfMap whole;
  whole.Append(text);
  ksym::PerfMap torn;
  torn.Append(text.substr(0, cut));
  static_cast<void>(torn.Find({0}));
  torn.Append(text.substr(cut));
  if (whole.size() != torn.size()) std::abort();
  uint64_t address = 0;
  for (const uint64_t step : {1, 7, 4096, 65536, 1 << 30}) {
    for (int i = 0; i < 64; ++i, address += step) {
      const auto a = whole.Find({address});
      const auto b = torn.Find({address});
      if (a.has_value() != b.has_value()) std::abort();
      if (a && (a->name != b->name || address < a->start.value)) std::abort();
    }
  }
  return 0;
}
