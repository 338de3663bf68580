#include "daemon/profile/raw_profile_merge.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/profile/id_index.h"

namespace profd {
namespace {

using ksym::Mapping;

uint64_t HashOf(const RawSample& sample) {
  uint64_t hash = MixHash(sample.process.pid, sample.process.exec_count);
  hash = MixHash(hash, sample.process.start_ns);
  hash = MixHash(hash, sample.tid);
  hash = MixHash(hash, std::hash<std::string_view>()(sample.comm));
  hash = MixHash(hash, sample.user_stack);
  return MixHash(hash, sample.kernel_stack);
}

bool SameIdentity(const RawSample& a, const RawSample& b) {
  return a.process == b.process && a.tid == b.tid && a.comm == b.comm &&
         a.user_stack == b.user_stack && a.kernel_stack == b.kernel_stack;
}

void MergeSamples(std::vector<RawSample>& into,
                  std::vector<RawSample>&& interval) {
  IdIndex index;
  std::vector<RawSample> merged;
  merged.reserve(into.size() + interval.size());
  const auto add = [&](RawSample&& sample) {
    const auto [id, is_new] = index.FindOrInsert(
        HashOf(sample), static_cast<uint32_t>(merged.size()),
        [&](uint32_t other) { return SameIdentity(merged[other], sample); });
    if (is_new) {
      merged.push_back(std::move(sample));
    } else {
      merged[id].count += sample.count;
    }
  };
  std::ranges::for_each(into, [&](RawSample& s) { add(std::move(s)); });
  std::ranges::for_each(interval, [&](RawSample& s) { add(std::move(s)); });
  into = std::move(merged);
}

// An id for frames whose own one is taken by others: derived from the frames,
// so that the same stack finds the same id again in the next interval.
StackId OtherId(const std::unordered_map<StackId, RawStack>& stacks,
                const RawStack& stack) {
  StackId id =
      static_cast<StackId>(stack.end) * 2 + (stack.used_frame_pointers ? 1 : 0);
  for (const uint64_t frame : stack.frames) id = MixHash(id, frame);
  for (;; ++id) {
    if (id < kFirstStackId) id = kFirstStackId;
    const auto it = stacks.find(id);
    if (it == stacks.end() || it->second == stack) return id;
  }
}

// Returns the ids that changed.
std::unordered_map<StackId, StackId> MergeStacks(
    std::unordered_map<StackId, RawStack>& into,
    std::unordered_map<StackId, RawStack>&& interval) {
  std::unordered_map<StackId, StackId> renamed;
  std::vector<StackId> conflicts;
  for (auto& [id, stack] : interval) {
    const auto it = into.find(id);
    if (it == into.end()) {
      into.emplace(id, std::move(stack));
    } else if (it->second != stack) {
      conflicts.push_back(id);
    }
  }
  // In the ids' order, or the result would depend on the hash table's.
  std::ranges::sort(conflicts);
  for (const StackId id : conflicts) {
    RawStack& stack = interval[id];
    renamed[id] = OtherId(into, stack);
    into.emplace(renamed[id], std::move(stack));
  }
  return renamed;
}

// Both lists are sorted and free of overlaps.
void MergeMappings(std::vector<Mapping>& into, std::vector<Mapping>&& later) {
  if (into == later) return;
  std::vector<Mapping> kept;
  auto next = later.begin();
  for (Mapping& mapping : into) {
    while (next != later.end() && next->end <= mapping.start) ++next;
    const bool overlaps = next != later.end() && next->start < mapping.end;
    if (!overlaps) kept.push_back(std::move(mapping));
  }
  into.clear();
  std::merge(
      std::make_move_iterator(kept.begin()),
      std::make_move_iterator(kept.end()),
      std::make_move_iterator(later.begin()),
      std::make_move_iterator(later.end()), std::back_inserter(into),
      [](const Mapping& a, const Mapping& b) { return a.start < b.start; });
}

void MergeMetadata(CaptureMetadata& into, CaptureMetadata&& interval) {
  const uint64_t end = interval.start_unix_ns + interval.duration_ns;
  if (end > into.start_unix_ns + into.duration_ns) {
    into.duration_ns = end - into.start_unix_ns;
  }
  for (std::string& warning : interval.warnings) {
    if (std::ranges::find(into.warnings, warning) == into.warnings.end()) {
      into.warnings.push_back(std::move(warning));
    }
  }
}

}  // namespace

void Merge(RawProfile& into, RawProfile&& interval) {
  if (into.metadata == CaptureMetadata{}) {
    into.metadata = std::move(interval.metadata);
  } else {
    MergeMetadata(into.metadata, std::move(interval.metadata));
  }
  into.accounting += interval.accounting;
  const auto renamed = MergeStacks(into.stacks, std::move(interval.stacks));
  if (!renamed.empty()) {
    for (RawSample& sample : interval.samples) {
      for (StackId* id : {&sample.user_stack, &sample.kernel_stack}) {
        const auto it = renamed.find(*id);
        if (it != renamed.end()) *id = it->second;
      }
    }
  }
  MergeSamples(into.samples, std::move(interval.samples));
  std::ranges::move(interval.kernel_changes,
                    std::back_inserter(into.kernel_changes));
  into.kernel_table_stale |= interval.kernel_table_stale;
  for (auto& [id, image] : interval.images) {
    MergeMappings(into.images[id].mappings, std::move(image.mappings));
    into.images[id].id = id;
  }
}

}  // namespace profd
