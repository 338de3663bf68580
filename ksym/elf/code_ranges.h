// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ksym/elf/elf_image.h"

namespace ksym {

// The addresses of a file's executable sections.
class CodeRanges {
 public:
  struct Range {
    uint64_t start = 0;
    uint64_t end = 0;  // half-open
  };

  explicit CodeRanges(const ElfImage& image);

  // The section that contains the address, or null. O(log sections).
  const Range* Find(uint64_t address) const;

 private:
  std::vector<Range> ranges_;  // sorted
};

}  // namespace ksym
