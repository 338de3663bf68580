// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ksym/base/keyed_hash.h"
#include "ksym/dwarf/dwarf_file.h"

namespace ksym {

// The names of functions that one unit has or refers to. Borrows its arguments.
// Not thread-safe.
class EntryNames {
 public:
  // Names with scopes go to `made`, at most some times the bytes that the unit
  // has itself; null: without scopes.
  EntryNames(const DwarfFile& file, const DwarfUnit& unit,
             std::deque<std::string>* made);

  // The linkage name of the entry or of what it refers to, else its source name
  // behind the scopes that it is in, where the language writes them with "::":
  // "outer::(anonymous namespace)::Local::Hidden". Classes without a name are
  // left out. Kept, as inlined functions are asked for often.
  std::string_view Find(const DwarfFile& file, uint64_t offset);

 private:
  // What an entry and those that it refers to say.
  struct Description {
    std::string_view linkage_name;
    std::string_view source_name;
    uint16_t tag = 0;           // of the last entry
    DwarfFile::Reference last;  // which is the one that has a scope
  };

  // Whether what is behind the linkage name matters.
  enum class Upto : uint8_t { kLinkageName, kEnd };
  static Description Describe(DwarfFile::Reference at, Upto upto);
  std::string_view Read(const DwarfFile& file, uint64_t offset);
  std::string_view WithScopes(const Description& function);

  const DwarfFile& file_;
  std::deque<std::string>* made_;
  size_t bytes_left_;
  using Names = std::unordered_map<uint64_t, std::string_view, NumberHash>;
  Names own_;
  Names others_;  // of the file that several share
};

}  // namespace ksym
