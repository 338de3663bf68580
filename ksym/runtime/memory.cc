// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/memory.h"

#include <algorithm>

namespace ksym {

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
