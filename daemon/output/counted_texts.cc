// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/counted_texts.h"

#include <algorithm>
#include <utility>

#include "daemon/output/text_order.h"

namespace profd {

namespace {

// Entries to fetch before they are needed.
constexpr size_t kTextsAhead = 16;

}  // namespace

void CountedTexts::Commit(uint64_t count) {
  entries_.push_back({.begin = committed_,
                      .size = buffer_.size() - committed_,
                      .count = count});
  committed_ = buffer_.size();
}

void CountedTexts::SortAndMerge() {
  std::vector<std::string_view> texts(entries_.size());
  std::ranges::transform(entries_, texts.begin(),
                         [this](const Entry& entry) { return Text(entry); });
  std::vector<Entry> merged;
  merged.reserve(entries_.size());
  const std::vector<uint32_t> order = OrderOfTexts(texts);
  for (size_t i = 0; i < order.size(); ++i) {
    // What comes next lies anywhere.
    if (i + kTextsAhead < order.size()) {
      __builtin_prefetch(&entries_[order[i + kTextsAhead]]);
      __builtin_prefetch(texts[order[i + kTextsAhead / 2]].data());
    }
    const uint32_t index = order[i];
    const Entry& entry = entries_[index];
    if (!merged.empty() && Text(merged.back()) == texts[index]) {
      merged.back().count += entry.count;
    } else {
      merged.push_back(entry);
    }
  }
  entries_ = std::move(merged);
}

}  // namespace profd
