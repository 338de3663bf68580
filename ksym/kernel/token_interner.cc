#include "ksym/kernel/token_interner.h"

#include <algorithm>
#include <bit>

namespace ksym {
namespace {

constexpr unsigned kFirstSlotBits = 10;
constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;

constexpr size_t kWord = sizeof(uint64_t);
static_assert(std::endian::native == std::endian::little);

uint64_t LoadWord(const char* text) {
  uint64_t word = 0;
  std::memcpy(&word, text, sizeof word);
  return word;
}

constexpr uint64_t Repeat(char c) {
  return static_cast<uint8_t>(c) * uint64_t{0x0101010101010101};
}

// The highest bit of each byte that is zero; other bits are not set.
uint64_t ZeroBytes(uint64_t word) {
  constexpr uint64_t kLow = Repeat(0x7f);
  return ~(((word & kLow) + kLow) | word | kLow);
}

// Bytes before the first separator. Reads whole words, of which one at least
// has a separator.
size_t WordLength(const char* text) {
  for (size_t length = 0;; length += kWord) {
    const uint64_t word = LoadWord(text + length);
    const uint64_t found =
        ZeroBytes(word ^ Repeat('_')) | ZeroBytes(word ^ Repeat('.'));
    if (found != 0) {
      return length + static_cast<size_t>(std::countr_zero(found)) / 8;
    }
  }
}

// Up to eight characters as a number, different for different texts of one
// length; longer texts hashed. Reads whole words.
uint64_t KeyOf(const char* text, size_t length) {
  if (length == 0) return 0;
  if (length <= kWord) {
    return LoadWord(text) << (8 * (kWord - length));
  }
  uint64_t hash = length;
  for (; length > kWord; text += kWord, length -= kWord) {
    hash = (hash ^ LoadWord(text)) * kMultiplier;
    hash ^= hash >> 32;
  }
  // The last eight characters, some of them for the second time.
  return hash ^ LoadWord(text + length - kWord);
}

// For texts of more than eight bytes.
bool SameText(const char* a, const char* b, size_t length) {
  for (size_t at = 0; at + kWord < length; at += kWord) {
    if (LoadWord(a + at) != LoadWord(b + at)) return false;
  }
  return LoadWord(a + length - kWord) == LoadWord(b + length - kWord);
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

void TokenInterner::DropIndex() {
  slots_ = {};
  padded_ = {};
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

uint32_t TokenInterner::Insert(size_t slot, const char* text,
                               const Slot& content) {
  const size_t length = content.meta >> 8;
  tokens_.push_back({static_cast<uint32_t>(text_.size()),
                     static_cast<uint8_t>(length),
                     static_cast<TokenEnd>(content.meta & 0xff)});
  text_.append(text, length);
  slots_[slot] = content;
  slots_[slot].id_plus_1 = static_cast<uint32_t>(tokens_.size());
  if (tokens_.size() * 2 > slots_.size()) Grow();
  return static_cast<uint32_t>(tokens_.size() - 1);
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
    if (length <= kWord ||
        SameText(text_.data() + tokens_[id].offset, text, length)) {
      return id;
    }
  }
  return Insert(at, text, {key, meta, 0});
}

void TokenInterner::Tokenize(std::string_view name,
                             std::vector<uint32_t>& ids) {
  // A copy whose end needs no care: a separator stops the search for one.
  if (padded_.size() < name.size() + 2 * kWord) {
    padded_.resize(name.size() + 2 * kWord);
  }
  std::memcpy(padded_.data(), name.data(), name.size());
  const char* at = padded_.data();
  const char* const end = at + name.size();
  padded_[name.size()] = '_';
  for (;;) {
    const size_t word = WordLength(at);
    const size_t length = std::min(word, kMaxTokenText);
    const char* const stop = at + length;
    if (stop == end) {
      ids.push_back(Intern(at, length, TokenEnd::kEndOfName) | kLastToken);
      return;
    }
    auto token_end = TokenEnd::kNothing;
    size_t end_length = 0;
    if (length == word) {
      const bool two = stop + 1 != end && stop[0] == '_' && stop[1] == '_';
      token_end = stop[0] == '.' ? TokenEnd::kDot
                  : two          ? TokenEnd::kTwoUnderscores
                                 : TokenEnd::kUnderscore;
      end_length = two ? 2 : 1;
    }
    ids.push_back(Intern(at, length, token_end));
    at = stop + end_length;
  }
}

void TokenInterner::Render(const uint32_t* ids, std::string& name) const {
  for (;; ++ids) {
    const uint32_t id = *ids & ~kLastToken;
    name += text(id);
    name += TokenEndText(end(id));
    if (id != *ids) return;
  }
}

}  // namespace ksym
