// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/label_set.h"

#include <algorithm>
#include <iterator>

namespace profd {
namespace {

bool HaveSameKey(const Label& a, const Label& b) { return a.key == b.key; }

}  // namespace

void Normalize(LabelSet& labels) {
  std::ranges::stable_sort(labels, {}, &Label::key);
  const auto [first, last] = std::ranges::unique(labels, HaveSameKey);
  labels.erase(first, last);
}

LabelSet MergeLabels(const LabelSet& labels, const LabelSet& others) {
  LabelSet all;
  all.reserve(labels.size() + others.size());
  // Where two have one key the first range's is taken.
  std::ranges::set_union(labels, others, std::back_inserter(all), {},
                         &Label::key, &Label::key);
  return all;
}

size_t BytesOf(const LabelSet& labels) {
  size_t bytes = 0;
  for (const auto& [key, value] : labels) {
    bytes += sizeof(Label) + key.size() + value.size();
  }
  return bytes;
}

std::string_view FindLabel(const LabelSet& labels, std::string_view key) {
  const auto found = std::ranges::lower_bound(labels, key, {}, &Label::key);
  return found == labels.end() || found->key != key ? std::string_view()
                                                    : found->value;
}

}  // namespace profd
