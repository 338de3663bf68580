#include "daemon/profile/raw_stack_table.h"

#include <algorithm>
#include <cassert>
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
  const char* next = packed.data();
  const char* const end = next + packed.size();
  for (uint64_t frame = 0; next != end;) {
    frame += static_cast<uint64_t>(
        protozero::decode_zigzag64(protozero::decode_varint(&next, end)));
    frames.push_back(frame);
  }
}

bool RawStackTable::Add(StackId id, const RawStack& stack) {
  return Add(id, PackedStack{.frames = PackFrames(stack.frames),
                             .end = stack.end,
                             .used_frame_pointers = stack.used_frame_pointers});
}

bool RawStackTable::Add(StackId id, const PackedStack& stack) {
  const auto [index, is_new] =
      index_.FindOrInsert(MixHash(0, id), static_cast<uint32_t>(ids_.size()),
                          [&](uint32_t other) { return ids_[other] == id; });
  if (!is_new) return false;
  ids_.push_back(id);
  frames_ += stack.frames;
  entries_.push_back({.frames_end = frames_.size(),
                      .end = stack.end,
                      .used_frame_pointers = stack.used_frame_pointers});
  return true;
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

std::optional<uint32_t> RawStackTable::IndexOf(StackId id) const {
  return index_.Find(MixHash(0, id),
                     [&](uint32_t other) { return ids_[other] == id; });
}

PackedStack RawStackTable::At(uint32_t index) const {
  const Entry& entry = entries_[index];
  const size_t begin = index == 0 ? 0 : entries_[index - 1].frames_end;
  return {.frames =
              std::string_view(frames_).substr(begin, entry.frames_end - begin),
          .end = entry.end,
          .used_frame_pointers = entry.used_frame_pointers};
}

bool operator==(const RawStackTable& a, const RawStackTable& b) {
  return a.size() == b.size() && std::ranges::all_of(a.ids(), [&](StackId id) {
           return a.Find(id) == b.Find(id);
         });
}

}  // namespace profd
