// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/raw_stack_table.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <protozero/varint.hpp>

#include "ksym/base/count_leb128.h"
#include "ksym/base/keyed_hash.h"

namespace profd {

namespace {

// As protobuf's sint64; `previous` becomes `number`.
void AppendDifference(uint64_t number, uint64_t& previous,
                      std::string& packed) {
  protozero::write_varint(
      std::back_inserter(packed),
      protozero::encode_zigzag64(static_cast<int64_t>(number - previous)));
  previous = number;
}

// Whether whole varints follow each other up to the end.
class Numbers {
 public:
  explicit Numbers(std::string_view bytes) : bytes_(bytes) {}
  bool AtEnd() const { return next_ == bytes_.size(); }
  std::optional<uint64_t> Next() {
    constexpr size_t kMaxVarintBytes = 10;
    const auto ends = [](char byte) {
      return (static_cast<unsigned char>(byte) & 0x80u) == 0;
    };
    const std::string_view rest = bytes_.substr(next_, kMaxVarintBytes);
    if (std::ranges::none_of(rest, ends)) return std::nullopt;
    return packed::TakeNumber(bytes_, next_);
  }

 private:
  std::string_view bytes_;
  size_t next_ = 0;
};

}  // namespace

std::string PackFrames(const std::vector<uint64_t>& frames) {
  std::string packed;
  uint64_t previous = 0;
  for (const uint64_t frame : frames) {
    AppendDifference(frame, previous, packed);
  }
  return packed;
}

std::string PackMixedFrames(std::span<const RawFrame> frames) {
  std::string packed;
  uint64_t address = 0;
  uint64_t unit = 0;
  uint64_t value = 0;
  while (!frames.empty()) {
    const RawFrameKind kind = frames.front().kind;
    const auto end = std::ranges::find_if(
        frames, [kind](const RawFrame& frame) { return frame.kind != kind; });
    const auto run = frames.first(static_cast<size_t>(end - frames.begin()));
    protozero::write_varint(std::back_inserter(packed), kind);
    protozero::write_varint(std::back_inserter(packed), run.size());
    for (const RawFrame& frame : run) {
      if (kind == kNativeCode) {
        AppendDifference(frame.value, address, packed);
      } else {
        AppendDifference(frame.unit, unit, packed);
        AppendDifference(frame.value, value, packed);
      }
    }
    frames = frames.subspan(run.size());
  }
  return packed;
}

bool IsPackedMixedFrames(std::string_view packed) {
  Numbers numbers(packed);
  while (!numbers.AtEnd()) {
    const auto kind = numbers.Next();
    if (!kind || *kind > std::numeric_limits<RawFrameKind>::max()) return false;
    const auto frames = numbers.Next();
    // Each frame has a byte at least, so that this ends however many they are.
    if (!frames || *frames == 0) return false;
    for (uint64_t left = *frames; left > 0; --left) {
      if (!numbers.Next()) return false;
      if (*kind != kNativeCode && !numbers.Next()) return false;
    }
  }
  return true;
}

bool RawStackTable::Add(StackId id, const RawStack& stack) {
  return Add(id, PackedStack{.frames = PackFrames(stack.frames),
                             .end = stack.end,
                             .used_frame_pointers = stack.used_frame_pointers});
}

bool RawStackTable::Add(StackId id, const PackedStack& stack) {
  if (!AddId(id)) return false;
  Append(stack);
  return true;
}

bool RawStackTable::AddId(StackId id) {
  const auto enter = [&](StackId one, uint32_t number) {
    return index_
        .FindOrInsert(ksym::HashWords(one), number,
                      [&](uint32_t other) { return ids_[other] == one; })
        .second;
  };
  if (ascending_ && !ids_.empty() && id <= ids_.back()) {
    // The first one out of order: from now on only the index finds any.
    if (IndexOf(id)) return false;
    ascending_ = false;
    for (uint32_t i = 0; i < ids_.size(); ++i) enter(ids_[i], i);
  }
  if (!ascending_ && !enter(id, static_cast<uint32_t>(ids_.size()))) {
    return false;
  }
  ids_.push_back(id);
  return true;
}

void RawStackTable::Append(const PackedStack& stack) {
  const char* const first = frames_.data();
  const char* const last = first + frames_.size();
  const char* const begin = stack.frames.data();
  // std::less_equal orders pointers into different arrays, which `<=` does not.
  const bool is_within =
      std::less_equal<>()(first, begin) && std::less_equal<>()(begin, last) &&
      stack.frames.size() <= static_cast<size_t>(last - begin);
  entries_.push_back(
      {.begin = is_within ? static_cast<size_t>(begin - first) : frames_.size(),
       .size = static_cast<uint32_t>(stack.frames.size()),
       .end = stack.end,
       .used_frame_pointers = stack.used_frame_pointers,
       .mixed = stack.mixed});
  if (!is_within) frames_ += stack.frames;
}

std::optional<PackedStack> RawStackTable::Find(StackId id) const {
  const auto index = IndexOf(id);
  if (!index) return std::nullopt;
  return At(*index);
}

PackedStack RawStackTable::GetPacked(StackId id) const {
  const auto index = IndexOf(id);
  assert(index);
  return At(index.value_or(0));
}

RawStack RawStackTable::Get(StackId id) const {
  const PackedStack packed = GetPacked(id);
  RawStack stack = {.frames = {},
                    .end = packed.end,
                    .used_frame_pointers = packed.used_frame_pointers};
  ForEachFrame(packed, [&](const RawFrame& frame) {
    if (frame.is_address()) stack.frames.push_back(frame.value);
  });
  return stack;
}

std::optional<uint32_t> RawStackTable::IndexOf(StackId id,
                                               uint32_t near) const {
  if (!ascending_) {
    return index_.Find(ksym::HashWords(id),
                       [&](uint32_t other) { return ids_[other] == id; });
  }
  // In ever larger steps from `near` on, then halving the last one.
  size_t begin = near < ids_.size() && ids_[near] <= id ? near : 0;
  size_t end = begin;
  for (size_t step = 1; end < ids_.size() && ids_[end] < id; step *= 2) {
    begin = end;
    end = std::min(ids_.size(), end + step);
  }
  const auto first = ids_.begin();
  const auto at =
      std::lower_bound(first + static_cast<std::ptrdiff_t>(begin),
                       first + static_cast<std::ptrdiff_t>(end), id);
  if (at == ids_.end() || *at != id) return std::nullopt;
  return static_cast<uint32_t>(at - first);
}

PackedStack RawStackTable::At(uint32_t index) const {
  const Entry& entry = entries_[index];
  return {.frames = std::string_view(frames_).substr(entry.begin, entry.size),
          .end = entry.end,
          .used_frame_pointers = entry.used_frame_pointers,
          .mixed = entry.mixed};
}

size_t RawStackTable::CountFrames() const {
  size_t frames = 0;
  for (uint32_t index = 0; index < entries_.size(); ++index) {
    const Entry& entry = entries_[index];
    if (entry.mixed) {
      ForEachFrame(At(index), [&](const RawFrame&) { ++frames; });
      continue;
    }
    frames += ksym::CountLeb128(
        std::string_view(frames_).substr(entry.begin, entry.size));
  }
  return frames;
}

bool operator==(const RawStackTable& a, const RawStackTable& b) {
  return a.size() == b.size() && std::ranges::all_of(a.ids(), [&](StackId id) {
           return a.Find(id) == b.Find(id);
         });
}

}  // namespace profd
