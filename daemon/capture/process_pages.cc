// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/process_pages.h"

#include <algorithm>

namespace profd {

void ProcessPages::Begin(uint32_t pid) {
  pid_ = pid;
  pages_.clear();
}

const ProcessPages::Page& ProcessPages::PageOf(uint64_t number) const {
  if (pages_.size() >= kMaxPages && !pages_.contains(number)) pages_.clear();
  const auto [at, is_new] = pages_.try_emplace(number);
  Page& page = at->second;
  if (is_new) page.size = memory_.Read(pid_, number * kPageBytes, page.bytes);
  return page;
}

size_t ProcessPages::ReadSome(ksym::Address address,
                              std::span<std::byte> out) const {
  // Texts and tables are read once: they would push the objects out.
  if (out.size() > kPageBytes) return memory_.Read(pid_, address.value, out);
  size_t done = 0;
  while (done < out.size()) {
    const uint64_t at = address.value + done;
    const Page& page = PageOf(at / kPageBytes);
    const uint64_t begin = at % kPageBytes;
    if (begin >= page.size) break;
    const size_t bytes = std::min<size_t>(page.size - begin, out.size() - done);
    std::copy_n(page.bytes.begin() + static_cast<ptrdiff_t>(begin), bytes,
                out.begin() + static_cast<ptrdiff_t>(done));
    done += bytes;
  }
  return done;
}

}  // namespace profd
