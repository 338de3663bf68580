// SPDX-License-Identifier: Apache-2.0
#include "ksym/gsym/gsym_index.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace ksym {
namespace {

// Rows between two marks: a byte of memory per row, and some 15 ns to decode
// the rows up to the wanted one.
constexpr size_t kRowsPerMark = 16;
constexpr uint64_t kMaxWord = std::numeric_limits<uint32_t>::max();

template <typename T>
size_t BytesOf(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

}  // namespace

bool GsymFunctionIndex::MarkRows(ByteCursor in, uint64_t start) {
  GsymLineSteps steps;
  LineRow row;
  if (!ReadGsymLineHeader(in, start, steps, row)) return false;
  uint64_t last = 0;
  size_t count = 0;
  bool rises = true;
  const bool ok = RunGsymLineRows(
      in, steps, row, [&](const LineRow& next, const ByteCursor& behind) {
        const uint64_t address = next.address - start;
        // A lookup ends at the first row behind its address, so marks say the
        // same only where rows rise.
        rises = address >= last && address <= kMaxWord;
        last = address;
        if (++count % kRowsPerMark == 0) {
          marks_.push_back({static_cast<uint32_t>(address),
                            static_cast<uint32_t>(behind.offset()), next.file,
                            next.line});
        }
        return rises;
      });
  return ok && rises;
}

// All nodes, and their ranges with the depth at which they are.
bool GsymFunctionIndex::ReadNodes(GsymInlineReader reader, uint64_t start,
                                  std::vector<Range>& ranges) {
  struct Level {
    uint64_t base = 0;
    uint32_t parent = 0;
  };
  std::vector<Level> levels = {{start, 0}};
  bool fits = true;
  do {
    const Level level = levels.back();
    const auto index = static_cast<uint32_t>(nodes_.size());
    const auto depth = static_cast<uint32_t>(levels.size() - 1);
    GsymInlineNode node;
    const bool has_node =
        reader.Next(level.base, node, [&](uint64_t from, uint64_t size) {
          const uint64_t offset = from - start;
          fits = fits && offset <= kMaxWord && size <= kMaxWord - offset;
          if (size > 0) ranges.push_back({offset, offset + size, index, depth});
        });
    if (!has_node) {
      levels.pop_back();
      continue;
    }
    if (!fits || node.name > kMaxWord) return false;
    nodes_.push_back({static_cast<uint32_t>(node.first_start - start),
                      static_cast<uint32_t>(node.name), node.call_file,
                      node.call_line, level.parent});
    if (node.has_children) levels.push_back({node.first_start, index + 1});
    // The function's own node has no siblings, so nothing ends them.
  } while (reader.ok() && levels.size() > 1);
  return reader.ok() && fits;
}

void GsymFunctionIndex::AddSegment(uint64_t start, uint32_t node) {
  const auto at = static_cast<uint32_t>(start);
  if (!segments_.empty() && segments_.back().start == at) {
    segments_.back().node = node;
  } else {
    segments_.push_back({at, node});
  }
}

// Goes over the ranges by address, with those that are open on a stack. Each
// must lie within one of its caller's, and beside those of the same caller.
bool GsymFunctionIndex::CutIntoSegments(std::vector<Range>& ranges) {
  std::ranges::sort(ranges, [](const Range& a, const Range& b) {
    // A caller before what is inlined at its first byte, so that it is open
    // when that comes.
    return a.start != b.start ? a.start < b.start : a.depth < b.depth;
  });
  std::vector<Range> open;
  const auto close_until = [&](uint64_t address) {
    while (!open.empty() && open.back().end <= address) {
      const uint64_t end = open.back().end;
      open.pop_back();
      AddSegment(end, open.empty() ? 0 : open.back().node + 1);
    }
  };
  for (const Range& range : ranges) {
    close_until(range.start);
    const uint32_t parent = nodes_[range.node].parent;
    const bool is_nested = parent == 0 ? open.empty()
                                       : !open.empty() &&
                                             open.back().node + 1 == parent &&
                                             range.end <= open.back().end;
    if (!is_nested) return false;
    AddSegment(range.start, range.node + 1);
    open.push_back(range);
  }
  close_until(kMaxWord + 1);
  return true;
}

bool GsymFunctionIndex::Build(const GsymFile& file, const Source& source) {
  // Put together here, so that what is kept has no room to spare.
  GsymFunctionIndex made;
  if (source.lines.size() > kMaxWord) return false;
  if (source.lines.data() != nullptr &&
      !made.MarkRows(ByteCursor(source.lines, file.byte_order()),
                     source.start)) {
    return false;
  }
  if (source.inlines.data() != nullptr) {
    std::vector<Range> ranges;
    const GsymInlineReader reader(ByteCursor(source.inlines, file.byte_order()),
                                  file.string_bytes());
    if (!made.ReadNodes(reader, source.start, ranges) ||
        !made.CutIntoSegments(ranges)) {
      return false;
    }
  }
  marks_ = made.marks_;
  nodes_ = made.nodes_;
  segments_ = made.segments_;
  return true;
}

// Rows at one address may be on both sides of a mark; the last one is the
// answer.
const GsymFunctionIndex::RowMark* GsymFunctionIndex::MarkUpTo(
    uint64_t offset) const {
  const auto next =
      std::ranges::upper_bound(marks_, offset, {}, &RowMark::address);
  return next == marks_.begin() ? nullptr : &*(next - 1);
}

uint32_t GsymFunctionIndex::InnermostAt(uint64_t offset) const {
  const auto next =
      std::ranges::upper_bound(segments_, offset, {}, &Segment::start);
  return next == segments_.begin() ? 0 : (next - 1)->node;
}

size_t GsymFunctionIndex::memory_bytes() const {
  // And its place in a hash table.
  return sizeof(*this) + 4 * sizeof(void*) + BytesOf(marks_) + BytesOf(nodes_) +
         BytesOf(segments_);
}

const GsymFunctionIndex* GsymIndex::Visit(
    uint32_t function, const GsymFunctionIndex::Source& source) {
  uint32_t& place = places_[function];
  if (place >= kFirstIndexed) return &indices_[place - kFirstIndexed];
  if (place == kUnfit) return nullptr;
  if (place == kUnseen) {
    const size_t bytes = source.lines.size() + source.inlines.size();
    place = bytes < min_function_bytes_ ? kUnfit : kSeen;
    return nullptr;
  }
  // Before it is tried: what does not fit now is not tried again.
  place = kUnfit;
  GsymFunctionIndex index;
  if (bytes_ >= max_bytes_ || !index.Build(file_, source)) return nullptr;
  bytes_ += index.memory_bytes();
  place = kFirstIndexed + static_cast<uint32_t>(indices_.size());
  return &indices_.emplace_back(std::move(index));
}

}  // namespace ksym
