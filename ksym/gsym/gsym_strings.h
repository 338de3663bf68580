// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/base/keyed_hash.h"

namespace ksym {

// A string table under construction: NUL-terminated texts, each once, the
// empty one at offset 0. 16 bytes per text beside its own, at half load.
class GsymStrings {
 public:
  GsymStrings() : slots_(kFirstSlots) {}

  // The text's offset. A NUL within it ends it.
  uint64_t Add(std::string_view text) {
    text = text.substr(0, text.find('\0'));
    if (text.empty()) return 0;
    if (2 * count_ >= slots_.size()) Grow();
    const size_t hash = HashText(text);
    Slot& slot = FindSlot(hash, text);
    if (slot.end == 0) {
      slot = {static_cast<uint32_t>(hash), static_cast<uint32_t>(text.size()),
              bytes_.size() + text.size()};
      bytes_ += text;
      bytes_ += '\0';
      ++count_;
    }
    return slot.end - slot.size;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  static constexpr size_t kFirstSlots = 1024;
  struct Slot {
    uint32_t hash = 0;
    uint32_t size = 0;
    uint64_t end = 0;  // of the text; 0: empty
  };

  Slot& FindSlot(size_t hash, std::string_view text) {
    for (size_t i = hash;; ++i) {
      Slot& slot = slots_[i & (slots_.size() - 1)];
      if (slot.end == 0) return slot;
      if (slot.hash == static_cast<uint32_t>(hash) &&
          std::string_view(bytes_).substr(slot.end - slot.size, slot.size) ==
              text) {
        return slot;
      }
    }
  }

  void Grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.end == 0) continue;
      const auto text =
          std::string_view(bytes_).substr(slot.end - slot.size, slot.size);
      FindSlot(HashText(text), text) = slot;
    }
  }

  std::string bytes_ = std::string(1, '\0');
  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace ksym
