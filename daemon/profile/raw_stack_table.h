// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/profile/id_index.h"
#include "daemon/profile/stack_end.h"

namespace profd {

// 64-bit hash of a stack's frames (exact store) or a bucket number (stackid
// store). The values below kFirstStackId are states, not stacks.
using StackId = uint64_t;
inline constexpr StackId kNoStack = 0;        // there was none to take
inline constexpr StackId kFaultedStack = 1;   // the walk failed
inline constexpr StackId kCollidedStack = 2;  // stackid store: bucket taken
inline constexpr StackId kFirstStackId = 16;

// Addresses of native code, leaf first. The first one is where the CPU was, the
// others are return addresses, whose code is one byte before them; so that this
// holds for a function that a signal interrupted, too, its address is one more
// than where it was.
struct RawStack {
  std::vector<uint64_t> frames;
  StackEnd end = StackEnd::kFramePointers;
  // Frame pointers helped where there was no table.
  bool used_frame_pointers = false;

  friend bool operator==(const RawStack&, const RawStack&) = default;
};

// The same of any kinds of code, as a raw capture has it.
struct PackedStack {
  std::string_view frames;
  StackEnd end = StackEnd::kFramePointers;
  bool used_frame_pointers = false;
  // Whether `frames` is of PackMixedFrames() and not of PackFrames().
  bool mixed = false;

  friend bool operator==(const PackedStack&, const PackedStack&) = default;
};

// Which kind of code a frame is of, by the number that it has in the sampler's
// records and in raw captures.
using RawFrameKind = uint8_t;
inline constexpr RawFrameKind kNativeCode = 0;

// The `value` of native code is the address. Other kinds mean what their
// FrameNamer knows: `unit` is the file, or the object of a runtime, that the
// code is in, and `value` the place in it.
struct RawFrame {
  RawFrameKind kind = kNativeCode;
  uint64_t unit = 0;
  uint64_t value = 0;

  // Native code: `value` is all that there is to name it by.
  bool is_address() const { return kind == kNativeCode; }

  friend bool operator==(const RawFrame&, const RawFrame&) = default;
};

// Each address is the difference to the one before, as a varint of protobuf's
// sint64; some two bytes each.
std::string PackFrames(const std::vector<uint64_t>& frames);
// Runs of frames of one kind: the kind and how many there are, as varints, then
// the frames. Those of native code are as above; of others there are the
// differences of unit and of value to the one before that is not native.
std::string PackMixedFrames(std::span<const RawFrame> frames);
// Whether it made these bytes, or could have; they may come from anywhere.
bool IsPackedMixedFrames(std::string_view packed);

namespace packed {

// The next varint; there must be a whole one, of at most ten bytes.
inline uint64_t TakeNumber(std::string_view bytes, size_t& next) {
  uint64_t number = 0;
  uint8_t byte = 0;
  unsigned shift = 0;
  do {
    byte = static_cast<uint8_t>(bytes[next++]);
    number |= uint64_t{byte & 0x7fu} << (shift & 63u);
    shift += 7;
  } while ((byte & 0x80u) != 0);
  return number;
}

inline uint64_t TakeDifference(std::string_view bytes, size_t& next) {
  const uint64_t number = TakeNumber(bytes, next);
  return number >> 1 ^ (0 - (number & 1));  // the lowest bit is the sign
}

}  // namespace packed

// Calls `frame(RawFrame)` for each frame, leaf first. The bytes must be what
// these functions made or accept, or whole varints of at most ten bytes.
template <typename Function>
void ForEachFrame(const PackedStack& stack, const Function& frame) {
  const std::string_view bytes = stack.frames;
  RawFrame native;
  RawFrame other = {.kind = kNativeCode};
  // One place for the call, so that it is inlined.
  uint64_t left = stack.mixed ? 0 : bytes.size();
  for (size_t next = 0; next < bytes.size();) {
    if (left == 0) {
      other.kind = static_cast<RawFrameKind>(packed::TakeNumber(bytes, next));
      left = packed::TakeNumber(bytes, next);
      continue;
    }
    --left;
    RawFrame* const at = other.kind == kNativeCode ? &native : &other;
    if (at == &other) other.unit += packed::TakeDifference(bytes, next);
    at->value += packed::TakeDifference(bytes, next);
    frame(std::as_const(*at));
  }
}

// The same of a stack that is not mixed, with the address of each frame alone.
template <typename Function>
void ForEachAddress(const PackedStack& stack, const Function& frame) {
  const std::string_view bytes = stack.frames;
  uint64_t address = 0;
  for (size_t next = 0; next < bytes.size();) {
    address += packed::TakeDifference(bytes, next);
    frame(address);
  }
}

// The stacks of a raw profile by their ids, packed: 24 bytes for one and its
// frames, and 11 more if they do not come in the order of their ids.
// 2^32 - 2 stacks at most.
class RawStackTable {
 public:
  RawStackTable() = default;
  // Takes bytes in which the frames of stacks lie that are to be added.
  explicit RawStackTable(std::string bytes) : frames_(std::move(bytes)) {}

  // False if there is one with this id, which then stays.
  bool Add(StackId id, const RawStack& stack);
  // The frames as ForEachFrame wants them; not copied if they lie in bytes().
  bool Add(StackId id, const PackedStack& stack);
  // Valid until a stack is added that does not lie in them.
  std::string_view bytes() const { return frames_; }

  bool contains(StackId id) const { return IndexOf(id).has_value(); }
  // Its frames are valid until the next Add.
  std::optional<PackedStack> Find(StackId id) const;
  // Its place in ids(). Cheap if it is not far behind `near`, as in samples
  // that are sorted by stack.
  std::optional<uint32_t> IndexOf(StackId id, uint32_t near = 0) const;
  PackedStack At(uint32_t index) const;
  // For a stack that is there; the frames of a packed one as in Find, and
  // otherwise those of native code.
  PackedStack GetPacked(StackId id) const;
  RawStack Get(StackId id) const;

  // The sum over all stacks. Reads all packed frames.
  size_t CountFrames() const;
  // In the order in which they were added.
  const std::vector<StackId>& ids() const { return ids_; }
  size_t size() const { return ids_.size(); }
  bool empty() const { return ids_.empty(); }

  // The same stacks, in whatever order.
  friend bool operator==(const RawStackTable& a, const RawStackTable& b);

 private:
  struct Entry {
    size_t begin = 0;  // of the frames in frames_
    uint32_t size = 0;
    StackEnd end = StackEnd::kFramePointers;
    bool used_frame_pointers = false;
    bool mixed = false;
  };

  // False if the id is there already.
  bool AddId(StackId id);
  void Append(const PackedStack& stack);

  std::vector<StackId> ids_;
  std::vector<Entry> entries_;
  std::string frames_;
  bool ascending_ = true;  // ids_; then the index is empty
  IdIndex index_;
};

}  // namespace profd
