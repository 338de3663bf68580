// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ksym {

// Where the memory of modules is, by what /proc/modules lists: where each one's
// text begins, and the bytes of all of its areas together. Up to Linux 6.3 they
// follow each other. Since then each is somewhere, and the text has what the
// others leave of the bytes.
class ModuleExtents {
 public:
  // [start, end): as long as the module is in one piece.
  void Add(uint64_t start, uint64_t end) {
    extents_.push_back({start, end, 0});
  }
  // Before anything is asked.
  void Sort();

  bool empty() const { return extents_.empty(); }
  // By number, the one that the address is in, as far as the next one begins.
  std::optional<size_t> Find(uint64_t address) const;
  // Where a module ends that is in one piece, or another one begins.
  uint64_t End(size_t number) const;

  // That so many bytes of a module are elsewhere.
  void AddElsewhere(size_t number, uint64_t bytes) {
    extents_[number].elsewhere += bytes;
  }
  // Where the text ends at the latest, of a module whose areas are scattered;
  // nothing where the list contradicts the symbols.
  std::optional<uint64_t> TextEnd(size_t number) const;

 private:
  struct Extent {
    uint64_t start = 0;
    uint64_t end = 0;
    uint64_t elsewhere = 0;  // bytes
  };

  std::vector<Extent> extents_;
};

}  // namespace ksym
