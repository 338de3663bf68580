// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/text_pieces.h"

#include <algorithm>
#include <cstring>

#include "daemon/output/text_order.h"
#include "ksym/base/keyed_hash.h"

namespace profd {

uint32_t TextPieces::Add(std::string_view text) {
  const auto [number, is_new] = numbers_.FindOrInsert(
      ksym::HashText(text), static_cast<uint32_t>(ends_.size()),
      [&](uint32_t other) { return TextOf(other) == text; });
  if (is_new) {
    texts_ += text;
    ends_.push_back(texts_.size());
  }
  return number;
}

void TextPieces::Rank() {
  std::vector<std::string_view> texts(ends_.size());
  for (uint32_t number = 0; number < texts.size(); ++number) {
    texts[number] = TextOf(number);
  }
  order_ = OrderOfTexts(texts);
  ranks_.resize(order_.size());
  for (uint32_t i = 0; i < order_.size(); ++i) ranks_[order_[i]] = i + 1;
}

size_t CountSharedRanks(unsigned rank_bits, std::string_view a,
                        std::string_view b) {
  const size_t size = std::min(a.size(), b.size());
  size_t same = 0;  // bytes
  uint64_t word_a = 0;
  uint64_t word_b = 0;
  for (; same + sizeof(word_a) <= size; same += sizeof(word_a)) {
    std::memcpy(&word_a, a.data() + same, sizeof(word_a));
    std::memcpy(&word_b, b.data() + same, sizeof(word_b));
    if (word_a != word_b) break;
  }
  while (same < size && a[same] == b[same]) ++same;
  size_t bits = same * 8;
  if (same < size) {
    bits += static_cast<size_t>(
        std::countl_zero(static_cast<uint8_t>(a[same] ^ b[same])));
  }
  return bits / rank_bits;
}

uint64_t SampleHeads::HashOf(const ProfileSample& sample) {
  return ksym::HashWords(ksym::WordOf(sample.comm, sample.pid),
                         ksym::WordOf(sample.cgroup, sample.labels),
                         uint64_t{sample.tid} << 32 |
                             uint64_t{sample.parked} << 24 |
                             uint64_t{sample.kind} << 16 |
                             static_cast<uint64_t>(sample.user_state) << 8 |
                             static_cast<uint64_t>(sample.kernel_state));
}

bool SampleHeads::IsSame(const ProfileSample& a, const ProfileSample& b) {
  return a.comm == b.comm && a.pid == b.pid && a.tid == b.tid &&
         a.cgroup == b.cgroup && a.labels == b.labels && a.kind == b.kind &&
         a.parked == b.parked && a.user_state == b.user_state &&
         a.kernel_state == b.kernel_state;
}

}  // namespace profd
