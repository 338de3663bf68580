#include "ksym/kernel/token_interner.h"

#include <algorithm>

namespace ksym {
namespace {

constexpr unsigned kFirstSlotBits = 10;
constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;

template <typename T>
uint64_t LoadAs(const char* text) {
  T word;
  std::memcpy(&word, text, sizeof word);
  return word;
}

// Up to eight characters as a number, different for different texts of one
// length; longer texts hashed.
uint64_t KeyOf(const char* text, size_t length) {
  if (length > 8) {
    uint64_t hash = length;
    for (; length > 8; text += 8, length -= 8) {
      hash = (hash ^ LoadAs<uint64_t>(text)) * kMultiplier;
      hash ^= hash >> 32;
    }
    // The last eight characters, some of them for the second time.
    return hash ^ LoadAs<uint64_t>(text + length - 8);
  }
  if (length >= 4) {
    return LoadAs<uint32_t>(text) << 32 | LoadAs<uint32_t>(text + length - 4);
  }
  if (length >= 2) {
    return LoadAs<uint16_t>(text) << 16 | LoadAs<uint16_t>(text + length - 2);
  }
  return length == 1 ? LoadAs<uint8_t>(text) : 0;
}

uint64_t HashOf(uint64_t key, uint32_t meta) {
  key = (key ^ meta) * kMultiplier;
  return (key ^ key >> 32) * kMultiplier;
}

}  // namespace

TokenInterner::TokenInterner()
    : slots_(size_t{1} << kFirstSlotBits), slot_shift_(64 - kFirstSlotBits) {
  // A prefix code needs two words even when all names are one token.
  Intern("", 0, TokenEnd::kEndOfName);
  Intern("", 0, TokenEnd::kUnderscore);
}

void TokenInterner::Grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  --slot_shift_;
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id_plus_1 == 0) continue;
    size_t at = HashOf(slot.key, slot.meta) >> slot_shift_;
    while (slots_[at].id_plus_1 != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

uint32_t TokenInterner::Intern(const char* text, size_t length, TokenEnd end) {
  const uint64_t key = KeyOf(text, length);
  const auto meta =
      static_cast<uint32_t>(length << 8 | static_cast<size_t>(end));
  const size_t mask = slots_.size() - 1;
  size_t at = HashOf(key, meta) >> slot_shift_;
  for (; slots_[at].id_plus_1 != 0; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.key != key || slot.meta != meta) continue;
    const uint32_t id = slot.id_plus_1 - 1;
    if (length <= 8 ||
        std::memcmp(text_.data() + tokens_[id].offset, text, length) == 0) {
      return id;
    }
  }
  tokens_.push_back(
      {static_cast<uint32_t>(text_.size()), static_cast<uint8_t>(length), end});
  text_.append(text, length);
  const auto id = static_cast<uint32_t>(tokens_.size() - 1);
  slots_[at] = {key, meta, id + 1};
  if (tokens_.size() * 2 > slots_.size()) Grow();
  return id;
}

void TokenInterner::Tokenize(std::string_view name,
                             std::vector<uint32_t>& ids) {
  const char* at = name.data();
  const char* const end = at + name.size();
  for (;;) {
    const char* const word = at;
    const char* const limit = end - at > static_cast<ptrdiff_t>(kMaxTokenText)
                                  ? at + kMaxTokenText
                                  : end;
    while (at != limit && *at != '_' && *at != '.') ++at;
    const auto length = static_cast<size_t>(at - word);
    if (at == end) {
      ids.push_back(Intern(word, length, TokenEnd::kEndOfName));
      return;
    }
    auto token_end = TokenEnd::kNothing;
    if (*at == '.') {
      token_end = TokenEnd::kDot;
    } else if (*at == '_') {
      token_end = at + 1 != end && at[1] == '_' ? TokenEnd::kTwoUnderscores
                                                : TokenEnd::kUnderscore;
    }
    at += TokenEndText(token_end).size();
    ids.push_back(Intern(word, length, token_end));
  }
}

void TokenInterner::Render(std::span<const uint32_t> ids,
                           std::string& name) const {
  for (const uint32_t id : ids) {
    name += text(id);
    name += TokenEndText(end(id));
  }
}

}  // namespace ksym
