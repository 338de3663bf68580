// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/memory.h"

#include <algorithm>
#include <cstddef>

namespace ksym {

const std::vector<std::byte>* CachedMemory::PageAt(uint64_t number) const {
  const auto found = pages_.find(number);
  if (found != pages_.end()) return &found->second;
  if (pages_.size() >= kMaxPages) return nullptr;
  std::vector<std::byte>& page = pages_[number];
  page.resize(kPageBytes);
  page.resize(memory_.ReadSome({number * kPageBytes}, page));
  return &page;
}

size_t CachedMemory::ReadSome(Address address, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const uint64_t at = address.value + done;
    const auto* page = PageAt(at / kPageBytes);
    const size_t skipped = at % kPageBytes;
    if (page == nullptr || skipped >= page->size()) break;
    const size_t size = std::min(out.size() - done, page->size() - skipped);
    std::copy_n(page->begin() + static_cast<ptrdiff_t>(skipped), size,
                out.begin() + static_cast<ptrdiff_t>(done));
    done += size;
  }
  return done;
}

size_t PieceMemory::ReadSome(Address address, std::span<std::byte> out) const {
  size_t most = 0;
  for (const Piece& piece : pieces_) {
    const uint64_t skipped = address - piece.address;
    if (skipped >= piece.bytes.size()) continue;
    const auto found = piece.bytes.subspan(skipped);
    const size_t size = std::min(found.size(), out.size());
    if (size <= most) continue;
    std::copy_n(found.begin(), size, out.begin());
    most = size;
  }
  return most;
}

}  // namespace ksym
