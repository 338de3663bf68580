#include "daemon/output/text_pieces.h"

#include <functional>

#include "daemon/output/text_order.h"

namespace profd {

uint32_t TextPieces::Add(std::string_view text) {
  const auto [number, is_new] = numbers_.FindOrInsert(
      std::hash<std::string_view>()(text), static_cast<uint32_t>(ends_.size()),
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

bool TextPieces::AnyBeginsNext() const {
  for (uint32_t rank = 1; rank < order_.size(); ++rank) {
    if (BeginsNext(rank)) return true;
  }
  return false;
}

uint64_t SampleHeads::HashOf(const ProfileSample& sample) {
  uint64_t hash = MixHash(sample.comm, uint64_t{sample.pid} << 32 | sample.tid);
  hash = MixHash(hash, sample.cgroup);
  return MixHash(hash, static_cast<uint64_t>(sample.user_state) << 8 |
                           static_cast<uint64_t>(sample.kernel_state));
}

bool SampleHeads::IsSame(const ProfileSample& a, const ProfileSample& b) {
  return a.comm == b.comm && a.pid == b.pid && a.tid == b.tid &&
         a.cgroup == b.cgroup && a.user_state == b.user_state &&
         a.kernel_state == b.kernel_state;
}

}  // namespace profd
