// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ksym/process/process_image.h"

namespace ksym {

// Mappings for tests.

inline Mapping At(uint64_t start, uint64_t end, const char* path) {
  Mapping mapping;
  mapping.start = Address{start};
  mapping.end = Address{end};
  mapping.inode = 1;
  mapping.path = path;
  return mapping;
}

// "start-end path" of each.
inline std::vector<std::string> Texts(const std::vector<Mapping>& mappings) {
  std::vector<std::string> texts;
  texts.reserve(mappings.size());
  for (const Mapping& m : mappings) {
    texts.push_back(std::to_string(m.start.value) + "-" +
                    std::to_string(m.end.value) + " " + m.path.str());
  }
  return texts;
}

inline Mapping WithInode(Mapping mapping, uint64_t inode, uint64_t offset) {
  mapping.inode = inode;
  mapping.file_offset = FileOffset{offset};
  return mapping;
}

}  // namespace ksym
