// SPDX-License-Identifier: Apache-2.0
// Any text as /proc/PID/maps. Whatever it says, the mappings are sorted and
// disjoint, so that the search among them is right.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ksym/process/process_image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ksym::ProcessImage image;
  size_t malformed = 0;
  image.mappings = ksym::ParseMaps(
      std::string_view(reinterpret_cast<const char*>(data), size), &malformed);
  ksym::Address last_end;
  for (const ksym::Mapping& mapping : image.mappings) {
    if (mapping.start < last_end || mapping.end <= mapping.start) std::abort();
    last_end = mapping.end;
    if (image.Find(mapping.start) != &mapping) std::abort();
    if (image.Find(mapping.end - 1) != &mapping) std::abort();
    if (image.Find(mapping.end) == &mapping) std::abort();
  }
  return 0;
}
