// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/text_order.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstring>

namespace profd {
namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);
// So few are compared as they are.
constexpr size_t kFew = 12;

// Texts lie anywhere; so many are fetched before they are needed.
constexpr size_t kItemsAhead = 8;

// One text, by the bytes that are looked at now.
struct Item {
  uint64_t word = 0;    // big-endian, so that numbers compare as the bytes do
  uint32_t filled = 0;  // bytes of it that the text has; a shorter one is first
  uint32_t index = 0;

  bool HasSameWord(const Item& other) const {
    return word == other.word && filled == other.filled;
  }
};

// Texts that are equal up to `depth`.
struct Range {
  size_t begin = 0;
  size_t end = 0;
  size_t depth = 0;
};

void LoadWord(std::string_view text, Item& item) {
  uint64_t word = 0;
  if (text.size() >= kWordBytes) {
    item.filled = kWordBytes;
    std::memcpy(&word, text.data(), kWordBytes);
  } else {
    item.filled = static_cast<uint32_t>(text.size());
    std::copy(text.begin(), text.end(), reinterpret_cast<char*>(&word));
  }
  item.word =
      std::endian::native == std::endian::little ? std::byteswap(word) : word;
}

// The word at `depth` of each; whether it is the same one in all of them.
bool LoadWords(std::span<const std::string_view> texts, size_t depth,
               std::span<Item> items) {
  bool is_same = true;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i + kItemsAhead < items.size()) {
      __builtin_prefetch(texts[items[i + kItemsAhead].index].data() + depth);
    }
    LoadWord(texts[items[i].index].substr(depth), items[i]);
    is_same &= items[i].HasSameWord(items.front());
  }
  return is_same;
}

}  // namespace

std::vector<uint32_t> OrderOfTexts(std::span<const std::string_view> texts) {
  std::vector<Item> items(texts.size());
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].index = static_cast<uint32_t>(i);
  }
  // A list and no recursion: texts may be equal for as long as anyone likes.
  std::vector<Range> open = {{.begin = 0, .end = items.size(), .depth = 0}};
  while (!open.empty()) {
    const Range range = open.back();
    open.pop_back();
    const auto rest = [&](const Item& item) {
      return texts[item.index].substr(range.depth);
    };
    const auto part =
        std::span(items).subspan(range.begin, range.end - range.begin);
    if (part.size() <= kFew) {
      std::ranges::sort(part, {}, rest);
      continue;
    }
    if (LoadWords(texts, range.depth, part)) {
      // Else they end here, all equal.
      if (part.front().filled == kWordBytes) {
        open.push_back({.begin = range.begin,
                        .end = range.end,
                        .depth = range.depth + kWordBytes});
      }
      continue;
    }
    std::ranges::sort(part, [](const Item& a, const Item& b) {
      return a.word != b.word ? a.word < b.word : a.filled < b.filled;
    });
    size_t end = 0;
    for (size_t begin = 0; begin < part.size(); begin = end) {
      for (end = begin + 1;
           end < part.size() && part[end].HasSameWord(part[begin]);) {
        ++end;
      }
      if (end - begin > 1 && part[begin].filled == kWordBytes) {
        open.push_back({.begin = range.begin + begin,
                        .end = range.begin + end,
                        .depth = range.depth + kWordBytes});
      }
    }
  }
  std::vector<uint32_t> order(items.size());
  std::ranges::transform(items, order.begin(), &Item::index);
  return order;
}

}  // namespace profd
