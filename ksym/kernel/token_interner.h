// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/heap_bytes.h"
#include "ksym/kernel/map_format.h"

namespace ksym {

// Marks the last one of a name's tokens where ids are stored.
inline constexpr uint32_t kLastToken = uint32_t{1} << 31;

// Cuts names at '_' and '.' into tokens and numbers the distinct ones:
//   __x64_sys_read.cold -> ""+"__"  "x64"+"_"  "sys"+"_"  "read"+"."  "cold"
// A kernel's table has some ten thousand of them. Memory: 8 bytes and the text
// per token and 24 bytes per slot of the hash table.
class TokenInterner {
 public:
  TokenInterner();

  // Appends the ids of the name's tokens, in order, to `ids`, the last one
  // with kLastToken. The name is not empty. kEndOfName ends the last token and
  // no other.
  void Tokenize(std::string_view name, std::vector<uint32_t>& ids);

  // What was cut last; until the next Tokenize.
  std::string_view last_name() const { return {padded_.data(), last_size_}; }

  // Appends the text that the ids, up to the one with kLastToken, came from.
  void Render(const uint32_t* ids, std::string& name) const;

  // Gives away the memory of what only Tokenize needs, which is then no longer
  // possible.
  HeapBytes TakeIndex();

  // Two at least: a prefix code cannot have fewer.
  size_t size() const { return tokens_.size(); }
  std::string_view text(uint32_t id) const {
    return std::string_view(text_).substr(tokens_[id].offset,
                                          tokens_[id].length);
  }
  TokenEnd end(uint32_t id) const { return tokens_[id].end; }

 private:
  // Longest text that a slot has whole.
  static constexpr size_t kExactBytes = 16;

  struct Token {
    uint32_t offset;
    uint8_t length;
    TokenEnd end;
  };
  struct Slot {
    uint64_t head = 0;  // the first eight characters
    uint64_t tail = 0;  // the last eight if it is longer; hashed beyond 16
    uint32_t meta = 0;  // length << 8 | end
    uint32_t id_plus_1 = 0;
  };

  // A token that has been cut off a name.
  struct Cut {
    const char* text;  // eight bytes after it can be read
    uint64_t head;
    uint64_t tail;
    uint64_t hash;
    uint32_t meta;
  };

  // Also starts to load the slot where the token should be.
  Cut MakeCut(const char* text, size_t length, TokenEnd end) const;
  uint32_t Intern(const Cut& cut);
  uint32_t Insert(size_t slot, const Cut& cut);
  void MakeSlots(unsigned bits);
  void Grow();
  Slot* slots() { return reinterpret_cast<Slot*>(slot_bytes_.data()); }
  const Slot* slots() const {
    return reinterpret_cast<const Slot*>(slot_bytes_.data());
  }

  std::string text_;
  std::vector<Token> tokens_;
  // Slots, all bits of the free ones zero: open addressing.
  HeapBytes slot_bytes_;
  size_t slot_count_ = 0;    // a power of two
  unsigned slot_shift_ = 0;  // of a 64-bit hash to a slot
  // The name being cut, with bytes after it that may be read.
  std::vector<char> padded_;
  size_t last_size_ = 0;
};

}  // namespace ksym
