#include "ksym/kernel/token_interner.h"

#include <algorithm>

namespace ksym {
namespace {

constexpr size_t kFirstSlots = size_t{1} << 15;

uint64_t LoadUpTo8(const char* text, size_t length) {
  uint64_t word = 0;
  std::memcpy(&word, text, length);
  return word;
}

uint32_t Hash(const char* text, size_t length, TokenEnd end) {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;
  uint64_t hash = length << 8 | static_cast<uint64_t>(end);
  for (; length > 8; text += 8, length -= 8) {
    hash = (hash ^ LoadUpTo8(text, 8)) * kMultiplier;
    hash ^= hash >> 32;
  }
  hash = (hash ^ LoadUpTo8(text, length)) * kMultiplier;
  return static_cast<uint32_t>(hash >> 32);
}

}  // namespace

TokenInterner::TokenInterner() : slots_(kFirstSlots) {
  // A prefix code needs two words even when all names are one token.
  Intern("", 0, TokenEnd::kEndOfName);
  Intern("", 0, TokenEnd::kUnderscore);
}

void TokenInterner::Grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id_plus_1 == 0) continue;
    size_t at = slot.hash & mask;
    while (slots_[at].id_plus_1 != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

uint32_t TokenInterner::Intern(const char* text, size_t length, TokenEnd end) {
  const uint32_t hash = Hash(text, length, end);
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  for (; slots_[at].id_plus_1 != 0; at = (at + 1) & mask) {
    if (slots_[at].hash != hash) continue;
    const uint32_t id = slots_[at].id_plus_1 - 1;
    const Token& token = tokens_[id];
    if (token.length == length && token.end == end &&
        std::memcmp(text_.data() + token.offset, text, length) == 0) {
      return id;
    }
  }
  tokens_.push_back(
      {static_cast<uint32_t>(text_.size()), static_cast<uint8_t>(length), end});
  text_.append(text, length);
  slots_[at] = {hash, static_cast<uint32_t>(tokens_.size())};
  const auto id = static_cast<uint32_t>(tokens_.size() - 1);
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
