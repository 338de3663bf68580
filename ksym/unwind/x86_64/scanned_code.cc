// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/x86_64/scanned_code.h"

#include <algorithm>
#include <utility>

namespace ksym {

ScannedCode::ScannedCode(std::vector<CodeGap> gaps, ReadCode read)
    : gaps_(std::move(gaps)), read_(std::move(read)), decoded_(kDecoded) {
  if (gaps_.empty()) return;
  first_page_ = gaps_.front().start / kPageBytes;
  pages_.resize(NumberOf(gaps_.back().end - 1) + 1);
}

const CodeGap* ScannedCode::FindGap(uint64_t at) const {
  const auto after = std::upper_bound(
      gaps_.begin(), gaps_.end(), at,
      [](uint64_t place, const CodeGap& gap) { return place < gap.start; });
  if (after == gaps_.begin() || at >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

ScannedCode::Page* ScannedCode::Load(uint32_t at) {
  std::unique_ptr<Page>& page = pages_[NumberOf(at)];
  if (page != nullptr || pages_left_ == 0) return page.get();
  --pages_left_;
  auto loaded = std::make_unique_for_overwrite<Page>();
  loaded->marks.fill(kUnseen);
  loaded->entries.reset();
  loaded->refuted.reset();
  loaded->bytes.fill({});
  // Only what gaps have: the rest of a page may not be in the file.
  const uint32_t start = at / kPageBytes * kPageBytes;
  const uint64_t end = uint64_t{start} + loaded->bytes.size();
  auto gap =
      std::partition_point(gaps_.begin(), gaps_.end(),
                           [&](const CodeGap& g) { return g.end <= start; });
  for (; gap != gaps_.end() && gap->start < end; ++gap) {
    const uint32_t from = std::max(gap->start, start);
    const auto to = static_cast<uint32_t>(std::min<uint64_t>(gap->end, end));
    const auto bytes =
        std::span(loaded->bytes).subspan(from - start, to - from);
    if (!read_(from, bytes)) return nullptr;
  }
  page = std::move(loaded);
  return page.get();
}

Instruction ScannedCode::Decode(uint32_t at) {
  Decoded& decoded = decoded_[at % kDecoded];
  if (decoded.at != at || decoded.instruction.size == 0) {
    decoded = {at, DecodeNow(at)};
  }
  return decoded.instruction;
}

Instruction ScannedCode::DecodeNow(uint32_t at) {
  const CodeGap* gap = FindGap(at);
  const Page* page = gap == nullptr ? nullptr : Load(at);
  if (page == nullptr) return {};
  const size_t size = std::min<size_t>(gap->end - at, kMaxInstructionBytes);
  return DecodeInstruction(
      std::span(page->bytes).subspan(at % kPageBytes, size));
}

uint32_t ScannedCode::MarkAt(uint32_t at) const {
  const Page* page = Find(at);
  return page == nullptr ? kUnseen : page->marks[at % kPageBytes];
}

bool ScannedCode::IsUnseen(uint32_t at, size_t size) const {
  for (uint32_t i = 0; i < size; ++i) {
    if (MarkAt(at + i) != kUnseen) return false;
  }
  return true;
}

void ScannedCode::SetMarks(uint32_t at, size_t size, uint32_t first,
                           uint32_t rest) {
  for (uint32_t i = 0; i < size; ++i) {
    if (Page* page = Load(at + i)) {
      page->marks[(at + i) % kPageBytes] = i == 0 ? first : rest;
    }
  }
}

void ScannedCode::Mark(uint32_t at, size_t size, uint32_t number) {
  SetMarks(at, size, number, kInside);
}

void ScannedCode::Unmark(uint32_t at, size_t size) {
  SetMarks(at, size, kUnseen, kUnseen);
}

bool ScannedCode::IsEntry(uint32_t at) const {
  const Page* page = Find(at);
  return page != nullptr && page->entries[at % kPageBytes];
}

void ScannedCode::MarkEntry(uint32_t at) {
  if (Page* page = Load(at)) page->entries[at % kPageBytes] = true;
}

bool ScannedCode::IsRefuted(uint32_t at) const {
  const Page* page = Find(at);
  return page != nullptr && page->refuted[at % kPageBytes];
}

void ScannedCode::MarkRefuted(uint32_t at) {
  if (Page* page = Load(at)) page->refuted[at % kPageBytes] = true;
}

uint32_t ScannedCode::FindMarked(uint32_t at, uint32_t end) const {
  while (at < end) {
    const Page* page = Find(at);
    const uint32_t page_end = std::min(end, (at / kPageBytes + 1) * kPageBytes);
    if (page == nullptr) {
      at = page_end;
      continue;
    }
    for (; at < page_end; ++at) {
      if (page->marks[at % kPageBytes] >= kFirstNumber) return at;
    }
  }
  return end;
}

}  // namespace ksym
