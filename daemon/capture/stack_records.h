// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bpf/profile_abi.h"
#include "daemon/capture/bpf_object.h"
#include "daemon/capture/runtime_records.h"
#include "daemon/profile/raw_profile.h"

namespace profd {

// The stacks that came through the ring, by set, until their set is drained.
// With the stackid store it reads the kernel's map instead.
class StackRecords {
 public:
  // As PackedStack, with frames of its own.
  struct Stored {
    std::string frames;
    StackEnd end = StackEnd::kFramePointers;
    bool used_frame_pointers = false;
    bool mixed = false;

    friend bool operator==(const Stored&, const Stored&) = default;
  };

  // Depth of a stack that the kernel walked to its limit.
  explicit StackRecords(uint32_t kernel_walk_depth)
      : kernel_walk_depth_(kernel_walk_depth) {}

  // Ignores a record that is shorter than it claims. set < PROFILE_SETS. Takes
  // what `runtimes` has for it.
  void Add(const profile_stack_record& record, size_t bytes,
           RuntimeRecords& runtimes);
  // One that was walked in user space. Its id is found again for equal ones.
  // `merged`: its frames with those of a runtime; empty: there are none.
  StackId AddWalked(uint32_t set, const RawStack& stack,
                    std::span<const RawFrame> merged = {});
  // One that was in another set under that id, which stays the same unless it
  // is another stack's by now.
  StackId AddKept(uint32_t set, StackId id, const Stored& stored);
  struct Key {
    uint32_t set = 0;
    StackId id = 0;
  };
  // Null: there is none of that id. Valid until something is added.
  const Stored* Find(const Key& key) const;
  // Puts the stack into the profile, and a waker without stacks for each that
  // it names; false when its frames are not known.
  bool Take(const BpfObject& object, Key key, RuntimeRecords& runtimes,
            RawProfile& profile) const;
  // kForNext: they can be taken for one more interval.
  enum class Keep : uint8_t { kNone, kForNext };
  void Clear(uint32_t set, Keep keep) {
    auto drained = std::exchange(stacks_[set], {});
    earlier_.clear();
    if (keep == Keep::kForNext) earlier_ = std::move(drained);
  }

 private:
  static Stored StoredOf(const RawStack& stack,
                         std::span<const RawFrame> mixed);

  uint32_t kernel_walk_depth_;

  using Stacks = std::unordered_map<StackId, Stored>;
  std::array<Stacks, PROFILE_SETS> stacks_;
  Stacks earlier_;  // of the interval before, if they were to be kept
};

// The frames of a mixed record whose size was checked, leaf first. A last one
// without its second word is left out.
std::vector<RawFrame> MixedFramesOf(const profile_stack_record& record);

// Counts what is wrong with the sample's stacks, and how its user stack ended.
// Both are in the profile.
void CountStackEnds(const RawSample& sample, RawProfile& profile);

}  // namespace profd
