// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/stack_records.h"

#include <algorithm>
#include <span>
#include <utility>

#include "bpf/unwind_abi.h"
#include "ksym/base/keyed_hash.h"

namespace profd {
namespace {

// The highest byte of the kernel's addresses.
constexpr RawFrameKind kKernelHalf = 0xff;

}  // namespace

void StackRecords::Add(const profile_stack_record& record, size_t bytes,
                       RuntimeRecords& runtimes) {
  // The samples of a stack that is passed over here count as lost, as it is
  // missing when they are taken (IntervalBuilder::Add()).
  if (record.depth > PROFILE_MAX_DEPTH || record.end >= kStackEnds ||
      bytes < PROFILE_STACK_RECORD_BYTES(record.depth)) {
    return;
  }
  std::vector<RawFrame> mixed;
  if (record.mixed != 0) mixed = MixedFramesOf(record);
  const RawStack stack = {
      .frames = {record.frames, record.frames + record.depth},
      .end = static_cast<StackEnd>(record.end),
      .used_frame_pointers = record.used_frame_pointer != 0};
  // The runtime's frames came before the native ones, and wait for them.
  if (mixed.empty()) mixed = runtimes.MergeStack(record.id, stack);
  // A stack comes again where the map of those that were sent is full, or two
  // CPUs send it at once. It has the same id: a hash of its frames.
  stacks_[record.header.set].try_emplace(record.id, StoredOf(stack, mixed));
}

StackRecords::Stored StackRecords::StoredOf(const RawStack& stack,
                                            std::span<const RawFrame> mixed) {
  return {.frames =
              mixed.empty() ? PackFrames(stack.frames) : PackMixedFrames(mixed),
          .end = stack.end,
          .used_frame_pointers = stack.used_frame_pointers,
          .mixed = !mixed.empty()};
}

StackId StackRecords::AddWalked(uint32_t set, const RawStack& stack,
                                std::span<const RawFrame> merged) {
  // With a secret, or others could make stacks that have one number, and each
  // would go past all of them.
  ksym::TableHash hash(ksym::ProcessHashKey());
  hash.Add(static_cast<uint64_t>(stack.end))
      .Add(stack.used_frame_pointers ? 1 : 0)
      .Add(stack.frames.size());
  for (const uint64_t frame : stack.frames) hash.Add(frame);
  for (const RawFrame& frame : merged) hash.Add(frame.value);
  return AddKept(set, hash.Finish(), StoredOf(stack, merged));
}

StackId StackRecords::AddKept(uint32_t set, StackId id, const Stored& stored) {
  // The next id is as good where another stack has this one: they are forgotten
  // with the set.
  for (;; ++id) {
    if (id < kFirstStackId) id = kFirstStackId;
    const auto [at, is_new] = stacks_[set].try_emplace(id, stored);
    if (is_new || at->second == stored) return id;
  }
}

const StackRecords::Stored* StackRecords::Find(const Key& key) const {
  for (const Stacks* stacks : {&stacks_[key.set], &earlier_}) {
    const auto found = stacks->find(key.id);
    if (found != stacks->end()) return &found->second;
  }
  return nullptr;
}

bool StackRecords::Take(const BpfObject& object, Key key,
                        RuntimeRecords& runtimes, RawProfile& profile) const {
  const auto [set, id] = key;
  if (id < kFirstStackId || profile.stacks.contains(id)) return true;
  if (object.store() == StackStore::kStackId) {
    auto frames =
        object.ReadStackTrace(set, static_cast<uint32_t>(id - kFirstStackId));
    if (frames.empty()) return false;
    // The kernel's walk does not say how it ended.
    const StackEnd end = frames.size() >= kernel_walk_depth_
                             ? StackEnd::kDepthLimit
                             : StackEnd::kFramePointers;
    profile.stacks.Add(id, RawStack{.frames = std::move(frames), .end = end});
    return true;
  }
  const Stored* stored = Find(key);
  if (stored == nullptr) return false;
  const PackedStack stack = {.frames = stored->frames,
                             .end = stored->end,
                             .used_frame_pointers = stored->used_frame_pointers,
                             .mixed = stored->mixed};
  profile.stacks.Add(id, stack);
  if (stack.mixed) {
    ForEachFrame(stack, [&](const RawFrame& frame) {
      if (frame.kind == kWaker && frame.value != 0) {
        profile.wakers.try_emplace(frame.value);
      }
      if (!RuntimeKindOf(frame.kind).is_in_table) return;
      runtimes.AddFrame(frame.value, profile.runtime_frames);
    });
  }
  return true;
}

std::vector<RawFrame> MixedFramesOf(const profile_stack_record& record) {
  const std::span words(record.frames, record.depth);
  std::vector<RawFrame> frames;
  for (size_t i = 0; i < words.size(); ++i) {
    const RawFrameKind kind = PROFILE_FRAME_KIND(words[i]);
    if (kind == kNativeCode || kind == kKernelHalf) {
      frames.push_back({.value = words[i]});
    } else if (i + 1 < words.size()) {
      // A head without its value, where the depth ends, is no frame.
      frames.push_back({.kind = kind,
                        .unit = PROFILE_FRAME_UNIT(words[i]),
                        .value = words[i + 1]});
      ++i;
    }
  }
  return frames;
}

void CountStackEnds(const RawSample& sample, RawProfile& profile) {
  Accounting& accounting = profile.accounting;
  const auto add = [&](DamageCause cause) {
    accounting.damaged_by_cause[static_cast<size_t>(cause)] += sample.count;
  };
  const auto either = [&](StackId state) {
    return sample.user_stack == state || sample.kernel_stack == state;
  };
  const auto is_truncated = [&](StackId id) {
    return id >= kFirstStackId &&
           profile.stacks.GetPacked(id).end == StackEnd::kDepthLimit;
  };
  if (either(kFaultedStack)) add(DamageCause::kStackFault);
  if (either(kCollidedStack)) add(DamageCause::kCollision);
  if (is_truncated(sample.user_stack) || is_truncated(sample.kernel_stack)) {
    add(DamageCause::kTruncated);
  }
  if (sample.user_stack < kFirstStackId) return;
  const PackedStack stack = profile.stacks.GetPacked(sample.user_stack);
  if (IsBroken(stack.end)) add(DamageCause::kBroken);
  accounting.user_stack_ends[static_cast<size_t>(stack.end)] += sample.count;
  if (stack.used_frame_pointers) {
    accounting.helped_by_frame_pointers += sample.count;
  }
}

}  // namespace profd
