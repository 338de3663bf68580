// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "daemon/fleet/stack_frame.h"
#include "daemon/profile/id_index.h"
#include "daemon/profile/profile.h"
#include "ksym/base/keyed_hash.h"

namespace profd::fleet {

// The stacks that were asked for lately, so that they are not fetched again: a
// stack's number is made of its frames, so what it stands for never changes.
// A stack that was not asked for while half of the room was filled is
// forgotten. Thread-safe.
class StackCache {
 public:
  explicit StackCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Gives the frames of a stack, from the root, to `use`, which may not ask the
  // cache; false: it is not here.
  template <typename Use>
  bool Find(uint64_t stack, const Use& use) {
    const std::lock_guard lock(mutex_);
    if (!FindFrames(stack)) return false;
    use(std::span<const StackFrame>(found_));
    return true;
  }
  void Add(uint64_t stack, std::span<const StackFrame> frames);

  size_t memory_bytes() const;

 private:
  // Stacks whose frames are numbers of functions, each of which is there once.
  class Generation {
   public:
    bool Get(uint64_t stack, std::vector<StackFrame>& frames) const;
    void Add(uint64_t stack, std::span<const StackFrame> frames);
    size_t memory_bytes() const;

   private:
    struct Function {
      const FrameKind* kind = nullptr;
      StringId name = 0;
      StringId module = 0;

      friend bool operator==(const Function&, const Function&) = default;
    };
    struct Place {
      size_t begin = 0;  // in frames_
      size_t size = 0;
    };

    uint32_t NumberOf(const StackFrame& frame);

    StringTable strings_;
    std::vector<Function> functions_;
    IdIndex function_ids_;
    std::vector<uint32_t> frames_;
    std::unordered_map<uint64_t, Place, ksym::NumberHash> stacks_;
  };

  bool FindFrames(uint64_t stack);
  void AddToYoung(uint64_t stack, std::span<const StackFrame> frames);

  const size_t max_bytes_;
  mutable std::mutex mutex_;  // of what follows
  Generation young_;
  Generation old_;  // before young_ was begun
  std::vector<StackFrame> found_;
};

}  // namespace profd::fleet
