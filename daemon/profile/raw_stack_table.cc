#include "daemon/profile/raw_stack_table.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <functional>
#include <iterator>
#include <protozero/varint.hpp>

namespace profd {

std::string PackFrames(const std::vector<uint64_t>& frames) {
  std::string packed;
  uint64_t previous = 0;
  for (const uint64_t frame : frames) {
    protozero::write_varint(
        std::back_inserter(packed),
        protozero::encode_zigzag64(static_cast<int64_t>(frame - previous)));
    previous = frame;
  }
  return packed;
}

void UnpackFrames(std::string_view packed, std::vector<uint64_t>& frames) {
  frames.clear();
  ForEachFrame(packed, [&](uint64_t frame) { frames.push_back(frame); });
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
        .FindOrInsert(MixHash(0, one), number,
                      [&](uint32_t other) { return ids_[other] == one; })
        .second;
  };
  if (ascending_ && !ids_.empty() && id <= ids_.back()) {
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
  const bool is_within =
      std::less_equal<>()(first, begin) && std::less_equal<>()(begin, last) &&
      stack.frames.size() <= static_cast<size_t>(last - begin);
  entries_.push_back(
      {.begin = is_within ? static_cast<size_t>(begin - first) : frames_.size(),
       .size = static_cast<uint32_t>(stack.frames.size()),
       .end = stack.end,
       .used_frame_pointers = stack.used_frame_pointers});
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
  UnpackFrames(packed.frames, stack.frames);
  return stack;
}

std::optional<uint32_t> RawStackTable::IndexOf(StackId id,
                                               uint32_t near) const {
  if (!ascending_) {
    return index_.Find(MixHash(0, id),
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
          .used_frame_pointers = entry.used_frame_pointers};
}

size_t RawStackTable::CountFrames() const {
  size_t frames = 0;
  for (const Entry& entry : entries_) {
    const char* const first = frames_.data() + entry.begin;
    // The last byte of a varint has not the highest bit.
    frames += static_cast<size_t>(
        std::count_if(first, first + entry.size, [](char byte) {
          return (static_cast<unsigned char>(byte) & 0x80u) == 0;
        }));
  }
  return frames;
}

bool operator==(const RawStackTable& a, const RawStackTable& b) {
  return a.size() == b.size() && std::ranges::all_of(a.ids(), [&](StackId id) {
           return a.Find(id) == b.Find(id);
         });
}

}  // namespace profd
