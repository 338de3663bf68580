// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/code_ranges.h"

#include <elf.h>

#include <algorithm>

#include "ksym/base/byte_reader.h"

namespace ksym {

CodeRanges::CodeRanges(const ElfImage& image) {
  for (const ElfSection& section : image.sections()) {
    if ((section.flags & SHF_EXECINSTR) == 0) continue;
    const auto end = CheckedAdd(section.address.value, section.size);
    // A section that wraps around has no code that anything could run.
    if (end && section.size > 0) {
      ranges_.push_back({section.address.value, *end});
    }
  }
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.start < b.start; });
}

const CodeRanges::Range* CodeRanges::Find(uint64_t address) const {
  const auto next = std::upper_bound(
      ranges_.begin(), ranges_.end(), address,
      [](uint64_t value, const Range& r) { return value < r.start; });
  if (next == ranges_.begin()) return nullptr;
  const Range& range = *(next - 1);
  return address < range.end ? &range : nullptr;
}

}  // namespace ksym
