#include "daemon/output/counted_texts.h"

#include <algorithm>

namespace profd {

void CountedTexts::Commit(uint64_t count) {
  entries_.push_back({.begin = committed_,
                      .size = buffer_.size() - committed_,
                      .count = count});
  committed_ = buffer_.size();
}

void CountedTexts::SortAndMerge() {
  std::ranges::sort(entries_, {}, [this](const Entry& e) { return Text(e); });
  size_t kept = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (kept > 0 && Text(entries_[kept - 1]) == Text(entries_[i])) {
      entries_[kept - 1].count += entries_[i].count;
    } else {
      entries_[kept++] = entries_[i];
    }
  }
  entries_.resize(kept);
}

}  // namespace profd
