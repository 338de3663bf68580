// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace profd {

// Texts (or the keys of texts, see text_pieces.h) with counts, all in one
// buffer: what every writer makes of the samples, sorts and merges, so that its
// output does not depend on the order in which samples came.
class CountedTexts {
 public:
  struct Entry {
    size_t begin = 0;
    size_t size = 0;
    uint64_t count = 0;
  };

  // Appending to the buffer composes a text; Commit ends it.
  std::string& buffer() { return buffer_; }
  void Commit(uint64_t count);
  // Where in the buffer the text that is being composed begins.
  size_t committed() const { return committed_; }

  // Sorts by text, byte by byte, and adds the counts of equal texts up.
  void SortAndMerge();

  std::vector<Entry>& entries() { return entries_; }
  const std::vector<Entry>& entries() const { return entries_; }
  std::string_view Text(const Entry& entry) const {
    return std::string_view(buffer_).substr(entry.begin, entry.size);
  }

 private:
  std::string buffer_;
  std::vector<Entry> entries_;
  size_t committed_ = 0;  // end of the last text
};

}  // namespace profd
