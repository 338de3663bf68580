#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

// Addresses, leaf first. The first one is where the CPU was, the others are
// return addresses, whose code is one byte before them; so that this holds for
// a function that a signal interrupted, too, its address is one more than
// where it was.
struct RawStack {
  std::vector<uint64_t> frames;
  StackEnd end = StackEnd::kFramePointers;
  // Frame pointers helped where there was no table.
  bool used_frame_pointers = false;

  friend bool operator==(const RawStack&, const RawStack&) = default;
};

// The same with its frames as a raw capture has them: each the difference to
// the one before, as a varint of protobuf's sint64; some two bytes each.
struct PackedStack {
  std::string_view frames;
  StackEnd end = StackEnd::kFramePointers;
  bool used_frame_pointers = false;

  friend bool operator==(const PackedStack&, const PackedStack&) = default;
};

std::string PackFrames(const std::vector<uint64_t>& frames);
// Replaces what is in `frames`. Only for what PackFrames made, or whole varints
// of at most ten bytes.
void UnpackFrames(std::string_view packed, std::vector<uint64_t>& frames);

// The stacks of a raw profile by their ids, packed: 24 bytes for one, its
// frames, and two allocations for all. 2^32 - 2 stacks at most.
class RawStackTable {
 public:
  // False if there is one with this id, which then stays.
  bool Add(StackId id, const RawStack& stack);
  // The frames as UnpackFrames wants them.
  bool Add(StackId id, const PackedStack& stack);

  bool contains(StackId id) const { return IndexOf(id).has_value(); }
  // Its frames are valid until the next Add.
  std::optional<PackedStack> Find(StackId id) const;
  // Of one that is there; the frames of a packed one as in Find.
  PackedStack GetPacked(StackId id) const;
  RawStack Get(StackId id) const;

  // In the order in which they were added.
  const std::vector<StackId>& ids() const { return ids_; }
  size_t size() const { return ids_.size(); }
  bool empty() const { return ids_.empty(); }

  // The same stacks, in whatever order.
  friend bool operator==(const RawStackTable& a, const RawStackTable& b);

 private:
  struct Entry {
    size_t frames_end = 0;  // they begin where the ones before end
    StackEnd end = StackEnd::kFramePointers;
    bool used_frame_pointers = false;
  };

  std::optional<uint32_t> IndexOf(StackId id) const;
  PackedStack At(uint32_t index) const;

  std::vector<StackId> ids_;
  std::vector<Entry> entries_;
  std::string frames_;
  IdIndex index_;
};

}  // namespace profd
