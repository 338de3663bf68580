// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "ksym/gsym/gsym_file.h"
#include "ksym/gsym/gsym_lookup.h"

namespace ksym {

// The texts of a GSYM file's references, each made once: a name is demangled
// when it is first asked for. Views are valid as long as this and the file's
// bytes. Memory: the demangled names that were asked for, 64 bytes each beside
// their texts, and 40 bytes per path. Borrows the file. Not thread-safe.
class GsymTexts {
 public:
  struct Name {
    std::string_view text;
    bool is_plain = false;  // of printable ASCII
  };
  struct Path {
    std::string_view directory;
    std::string_view base;
    bool is_plain = true;
  };

  enum class Names : uint8_t { kAsStored, kDemangled };
  GsymTexts(const GsymFile& file, Names names);

  // For references that a lookup found. The results are valid until the next
  // call. O(1), a name's first time O(its length).
  const Name& NameAt(uint64_t string_offset);
  const Path& PathAt(uint32_t file_index);

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};
  struct Slot {
    uint64_t string_offset = kFree;
    Name name;
  };

  Slot& SlotOf(uint64_t string_offset);
  void Grow();
  Name MakeName(uint64_t string_offset);
  std::string_view Keep(std::string_view text);

  const GsymFile& file_;
  Names names_;
  std::vector<Slot> slots_;  // a power of two, at most half of it in use
  size_t count_ = 0;
  std::vector<Path> paths_;  // by file; base is nothing (null) if not yet made
  Path no_path_;
  std::vector<std::unique_ptr<char[]>> chunks_;  // demangled names
  char* free_ = nullptr;
  size_t free_bytes_ = 0;
};

}  // namespace ksym
