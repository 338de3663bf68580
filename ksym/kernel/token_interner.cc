#include "ksym/kernel/token_interner.h"

#include <algorithm>
#include <array>
#include <bit>

namespace ksym {
namespace {

constexpr unsigned kFirstSlotBits = 10;
constexpr size_t kCutsAtOnce = 8;
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

TokenEnd SeparatorAt(const char* at, const char* end) {
  if (*at == '.') return TokenEnd::kDot;
  return at + 1 != end && at[1] == '_' ? TokenEnd::kTwoUnderscores
                                       : TokenEnd::kUnderscore;
}

uint64_t HashOf(uint64_t key, uint32_t meta) {
  key = (key ^ meta) * kMultiplier;
  return (key ^ key >> 32) * kMultiplier;
}

}  // namespace

TokenInterner::TokenInterner()
    : slots_(size_t{1} << kFirstSlotBits), slot_shift_(64 - kFirstSlotBits) {
  // A prefix code needs two words even when all names are one token.
  Intern(MakeCut("", 0, TokenEnd::kEndOfName));
  Intern(MakeCut("", 0, TokenEnd::kUnderscore));
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

uint32_t TokenInterner::Insert(size_t slot, const Cut& cut) {
  const size_t length = cut.meta >> 8;
  tokens_.push_back({static_cast<uint32_t>(text_.size()),
                     static_cast<uint8_t>(length),
                     static_cast<TokenEnd>(cut.meta & 0xff)});
  text_.append(cut.text, length);
  slots_[slot] = {cut.key, cut.meta, static_cast<uint32_t>(tokens_.size())};
  if (tokens_.size() * 2 > slots_.size()) Grow();
  return static_cast<uint32_t>(tokens_.size() - 1);
}

inline TokenInterner::Cut TokenInterner::MakeCut(const char* text,
                                                 size_t length,
                                                 TokenEnd end) const {
  Cut cut;
  cut.text = text;
  cut.key = KeyOf(text, length);
  cut.meta = static_cast<uint32_t>(length << 8 | static_cast<size_t>(end));
  cut.hash = HashOf(cut.key, cut.meta);
  __builtin_prefetch(&slots_[cut.hash >> slot_shift_]);
  return cut;
}

inline uint32_t TokenInterner::Intern(const Cut& cut) {
  const size_t mask = slots_.size() - 1;
  const size_t length = cut.meta >> 8;
  size_t at = cut.hash >> slot_shift_;
  for (; slots_[at].id_plus_1 != 0; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.key != cut.key || slot.meta != cut.meta) continue;
    const uint32_t id = slot.id_plus_1 - 1;
    if (length <= kWord ||
        SameText(text_.data() + tokens_[id].offset, cut.text, length)) {
      return id;
    }
  }
  return Insert(at, cut);
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
  // Some tokens are cut before the first is looked for: by then its slot has
  // come from memory.
  std::array<Cut, kCutsAtOnce> cuts;
  for (bool more = true; more;) {
    size_t count = 0;
    while (more && count < cuts.size()) {
      const size_t word = WordLength(at);
      const size_t length = std::min(word, kMaxTokenText);
      const char* const stop = at + length;
      auto token_end = TokenEnd::kNothing;
      if (stop == end) {
        token_end = TokenEnd::kEndOfName;
        more = false;
      } else if (length == word) {
        token_end = SeparatorAt(stop, end);
      }
      cuts[count++] = MakeCut(at, length, token_end);
      at = stop + TokenEndText(token_end).size();
    }
    for (size_t i = 0; i < count; ++i) ids.push_back(Intern(cuts[i]));
  }
  ids.back() |= kLastToken;
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
