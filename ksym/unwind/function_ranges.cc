// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/function_ranges.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>

#include "ksym/elf/elf_image.h"
#include "ksym/unwind/call_frame_section.h"

namespace ksym {
namespace {

// What reading takes: the section, and of each entry, which has 20 bytes there,
// twice as much.
constexpr uint64_t kBytesPerSectionByte = 3;

uint64_t BytesOfSections(const ElfImage& image) {
  uint64_t bytes = 0;
  for (const char* name : {".eh_frame", ".debug_frame"}) {
    const ElfSection* section = image.FindSection(name);
    if (section != nullptr) bytes = std::max(bytes, section->size);
  }
  return std::min<uint64_t>(bytes, kMaxCallFrameBytes);
}

}  // namespace

FunctionRanges::FunctionRanges(const CallFrames& frames) {
  constexpr uint64_t kMax = std::numeric_limits<uint32_t>::max();
  uint64_t base = std::numeric_limits<uint64_t>::max();
  const auto is_kept = [](const FrameEntry& entry) {
    return entry.size != 0 && entry.size <= kMax;
  };
  for (const FrameEntry& entry : frames.functions) {
    if (is_kept(entry)) base = std::min(base, entry.start);
  }
  base_ = {base};
  ranges_.reserve(frames.functions.size());
  for (const FrameEntry& entry : frames.functions) {
    if (!is_kept(entry) || entry.start - base > kMax) continue;
    ranges_.push_back({.start = static_cast<uint32_t>(entry.start - base),
                       .size = static_cast<uint32_t>(entry.size)});
  }
  std::ranges::sort(ranges_, [](const Range& a, const Range& b) {
    return std::tie(a.start, a.size) < std::tie(b.start, b.size);
  });
  // The smallest of those with one start is kept.
  const auto repeated = std::ranges::unique(
      ranges_,
      [](const Range& a, const Range& b) { return a.start == b.start; });
  ranges_.erase(repeated.begin(), repeated.end());
  ranges_.shrink_to_fit();
}

Result<FunctionRanges> FunctionRanges::Load(const ByteSource& source,
                                            const TableRoom& room) {
  const auto image = ElfImage::Parse(source);
  if (!image) return Fail(image.error());
  const std::shared_ptr<void> held =
      room ? room(BytesOfSections(*image) * kBytesPerSectionByte) : nullptr;
  auto section = ReadEhFrame(source, *image);
  if (section && section->bytes.empty()) {
    section = ReadDebugFrame(source, *image);
  }
  if (!section) return Fail(std::move(section.error()));
  return FunctionRanges(ReadCallFrames(*section));
}

std::optional<ElfAddress> FunctionRanges::FindStart(ElfAddress address) const {
  if (ranges_.empty() || address < base_) return std::nullopt;
  const uint64_t distance = address - base_;
  const auto after = std::ranges::upper_bound(
      ranges_, distance, {},
      [](const Range& range) { return uint64_t{range.start}; });
  // The first one begins at the base.
  const Range& range = *std::prev(after);
  if (distance - range.start >= range.size) return std::nullopt;
  return base_ + range.start;
}

}  // namespace ksym
