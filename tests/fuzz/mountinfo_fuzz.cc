// SPDX-License-Identifier: Apache-2.0
// Any text as /proc/PID/mountinfo. Whatever it says, there are no more mounts
// than lines, each has an absolute place and a type of one word, and a text
// that is read again line by line has the same mounts.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ksym/base/text.h"
#include "ksym/process/file_systems.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto mounts = ksym::ParseMountinfo(text);
  const auto lines = static_cast<size_t>(std::ranges::count(text, '\n')) + 1;
  if (!mounts) return lines > ksym::kMaxMounts ? 0 : (std::abort(), 0);
  if (mounts->size() > std::min(lines, ksym::kMaxMounts)) std::abort();
  auto next = mounts->begin();
  while (!text.empty()) {
    const auto one = ksym::ParseMountinfo(ksym::TakeField(text, '\n'));
    if (!one || one->size() > 1) std::abort();
    for (const ksym::Mount& mount : *one) {
      if (!mount.point.starts_with('/') || mount.type.empty() ||
          mount.type.contains(' ')) {
        std::abort();
      }
      if (next == mounts->end() || mount != *next++) std::abort();
    }
  }
  if (next != mounts->end()) std::abort();
  return 0;
}
