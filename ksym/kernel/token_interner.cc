// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/token_interner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>

namespace ksym {
namespace {

constexpr unsigned kFirstSlotBits = 13;
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

// Bit n is set if character n is a separator. Looks at whole words, 64 bytes
// at most; what is after `size` may be in the answer as well.
uint64_t FindSeparators(const char* text, size_t size) {
  constexpr uint64_t kGather = 0x0102040810204080;  // a byte's bit to the top
  uint64_t found = 0;
  for (size_t at = 0; at < std::min<size_t>(size, 64); at += kWord) {
    const uint64_t word = LoadWord(text + at);
    const uint64_t here =
        ZeroBytes(word ^ Repeat('_')) | ZeroBytes(word ^ Repeat('.'));
    found |= ((here >> 7) * kGather >> 56) << at;
  }
  return found;
}

// Keeps the first n bytes of a word.
constexpr auto kFirstBytes = [] {
  std::array<uint64_t, kWord + 1> masks = {};
  for (size_t n = 1; n <= kWord; ++n) masks[n] = masks[n - 1] << 8 | 0xff;
  return masks;
}();

// For texts of more than 16 bytes: what is between the first word and the
// last.
uint64_t HashMiddle(const char* text, size_t length) {
  uint64_t hash = 0;
  for (size_t at = kWord; at + kWord < length; at += kWord) {
    hash = (hash ^ LoadWord(text + at)) * kMultiplier;
    hash ^= hash >> 32;
  }
  return hash;
}

// How a token ends whose end is marked by the separator, or the end itself.
TokenEnd EndAt(const char* separator, const char* end) {
  const bool two = separator[1] == '_' && separator + 1 != end;
  TokenEnd found = two ? TokenEnd::kTwoUnderscores : TokenEnd::kUnderscore;
  found = *separator == '.' ? TokenEnd::kDot : found;
  return separator == end ? TokenEnd::kEndOfName : found;
}

constexpr auto kEndSizes = [] {
  std::array<uint8_t, kTokenEndCount> sizes = {};
  for (size_t i = 0; i < sizes.size(); ++i) {
    sizes[i] =
        static_cast<uint8_t>(TokenEndText(static_cast<TokenEnd>(i)).size());
  }
  return sizes;
}();

uint64_t HashOf(uint64_t head, uint64_t tail, uint32_t meta) {
  uint64_t hash = head + tail * kMultiplier + meta;
  hash = (hash ^ hash >> 32) * kMultiplier;
  return (hash ^ hash >> 32) * kMultiplier;
}

}  // namespace

TokenInterner::TokenInterner() {
  MakeSlots(kFirstSlotBits);
  // A prefix code needs two words even when all names are one token.
  constexpr std::array<char, kWord> kNothing = {};
  Intern(MakeCut(kNothing.data(), 0, TokenEnd::kEndOfName));
  Intern(MakeCut(kNothing.data(), 0, TokenEnd::kUnderscore));
}

HeapBytes TokenInterner::TakeIndex() {
  padded_ = {};
  last_size_ = 0;
  slot_count_ = 0;
  return std::move(slot_bytes_);
}

void TokenInterner::MakeSlots(unsigned bits) {
  slot_count_ = size_t{1} << bits;
  slot_shift_ = 64 - bits;
  slot_bytes_.Resize(slot_count_ * sizeof(Slot));
  std::memset(slot_bytes_.data(), 0, slot_bytes_.size());
}

void TokenInterner::Grow() {
  constexpr unsigned kMoreBits = 2;
  const HeapBytes old_bytes = std::move(slot_bytes_);
  const auto* old = reinterpret_cast<const Slot*>(old_bytes.data());
  const size_t old_count = slot_count_;
  slot_bytes_ = {};
  MakeSlots(64 - slot_shift_ + kMoreBits);
  const size_t mask = slot_count_ - 1;
  for (const Slot& slot : std::span(old, old_count)) {
    if (slot.id_plus_1 == 0) continue;
    size_t at = HashOf(slot.head, slot.tail, slot.meta) >> slot_shift_;
    while (slots()[at].id_plus_1 != 0) at = (at + 1) & mask;
    slots()[at] = slot;
  }
}

uint32_t TokenInterner::Insert(size_t slot, const Cut& cut) {
  const size_t length = cut.meta >> 8;
  tokens_.push_back({static_cast<uint32_t>(text_.size()),
                     static_cast<uint8_t>(length),
                     static_cast<TokenEnd>(cut.meta & 0xff)});
  text_.append(cut.text, length);
  slots()[slot] = {cut.head, cut.tail, cut.meta,
                   static_cast<uint32_t>(tokens_.size())};
  if (tokens_.size() * 2 > slot_count_) Grow();
  return static_cast<uint32_t>(tokens_.size() - 1);
}

inline TokenInterner::Cut TokenInterner::MakeCut(const char* text,
                                                 size_t length,
                                                 TokenEnd end) const {
  // Without branches on the length, which nothing predicts.
  Cut cut;
  cut.text = text;
  cut.head = LoadWord(text) & kFirstBytes[std::min(length, kWord)];
  const uint64_t last = LoadWord(text + std::max(length, kWord) - kWord);
  cut.tail = length > kWord ? last : 0;
  if (length > kExactBytes) [[unlikely]]
    cut.tail ^= HashMiddle(text, length);
  cut.meta = static_cast<uint32_t>(length << 8 | static_cast<size_t>(end));
  cut.hash = HashOf(cut.head, cut.tail, cut.meta);
  __builtin_prefetch(&slots()[cut.hash >> slot_shift_]);
  return cut;
}

inline uint32_t TokenInterner::Intern(const Cut& cut) {
  const size_t mask = slot_count_ - 1;
  const size_t length = cut.meta >> 8;
  size_t at = cut.hash >> slot_shift_;
  for (; slots()[at].id_plus_1 != 0; at = (at + 1) & mask) {
    const Slot& slot = slots()[at];
    if (((slot.head ^ cut.head) | (slot.tail ^ cut.tail) |
         (slot.meta ^ cut.meta)) != 0) {
      continue;
    }
    const uint32_t id = slot.id_plus_1 - 1;
    if (length <= kExactBytes ||
        std::memcmp(text_.data() + tokens_[id].offset, cut.text, length) == 0) {
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
  last_size_ = name.size();
  const char* at = padded_.data();
  const char* const end = at + name.size();
  padded_[name.size()] = '_';
  uint64_t separators = 0;  // those from `at` on that have been found
  // Some tokens are cut before the first is looked for: by then its slot has
  // come from memory.
  std::array<Cut, kCutsAtOnce> cuts;
  for (bool more = true; more;) {
    size_t count = 0;
    while (more && count < cuts.size()) {
      if (separators == 0) {
        separators = FindSeparators(at, static_cast<size_t>(end - at) + 1);
      }
      size_t length = kMaxTokenText;
      auto token_end = TokenEnd::kNothing;
      if (separators != 0) [[likely]] {
        length = static_cast<size_t>(std::countr_zero(separators));
        token_end = EndAt(at + length, end);
        more = at + length != end;
      }
      const size_t end_size = kEndSizes[static_cast<size_t>(token_end)];
      cuts[count++] = MakeCut(at, length, token_end);
      at += length + end_size;
      separators = separators >> length >> end_size;
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
