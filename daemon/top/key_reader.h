// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace profd {

// A key that was pressed.
struct Key {
  enum class Kind : uint8_t {
    kText,  // a character, in `text`
    kEnter,
    kEscape,
    kBackspace,
    kErase,   // Ctrl-U
    kRedraw,  // Ctrl-L
    kUp,
    kDown,
    kLeft,
    kRight,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
  };
  Kind kind = Kind::kText;
  std::string text = {};  // one character of UTF-8, printable

  friend bool operator==(const Key&, const Key&) = default;
};

// Makes keys of the bytes that a terminal sends, in whatever pieces they come.
// Sequences that are no key here, and bytes that are no UTF-8, are passed over.
// Not thread-safe.
class KeyReader {
 public:
  // A sequence that is longer does not end; it is passed over.
  static constexpr size_t kMaxSequenceBytes = 32;

  std::vector<Key> Read(std::string_view bytes);
  // Whether the end of a sequence is still to come; what follows within some
  // tens of milliseconds belongs to it.
  bool is_waiting() const { return !pending_.empty(); }
  // Nothing came: a lone ESC is the key.
  std::vector<Key> GiveUp();

 private:
  // Takes one key, or what is none, off the beginning of the text. False: its
  // end has not come.
  static bool TakeOne(std::string_view& text, std::vector<Key>& keys);

  std::string pending_;
};

}  // namespace profd
