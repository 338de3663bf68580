// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/raw_profile_merge.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/profile/id_index.h"
#include "ksym/base/keyed_hash.h"

namespace profd {
namespace {

using ksym::Mapping;

uint64_t HashOf(const RawSample& sample) {
  return ksym::HashWords(
      sample.process.pid, sample.process.exec_count, sample.process.start_ns,
      ksym::WordOf(uint32_t{sample.slice} << 8 | sample.kind, sample.tid),
      ksym::HashText(sample.comm.view()), sample.user_stack,
      sample.kernel_stack);
}

bool SameIdentity(const RawSample& a, const RawSample& b) {
  return a.process == b.process && a.tid == b.tid && a.kind == b.kind &&
         a.slice == b.slice && a.comm == b.comm &&
         a.user_stack == b.user_stack && a.kernel_stack == b.kernel_stack;
}

void MergeSamples(std::vector<RawSample>& into,
                  const std::vector<RawSample>& interval) {
  IdIndex index;
  std::vector<RawSample> merged;
  merged.reserve(into.size() + interval.size());
  const auto add = [&](const RawSample& sample) {
    const auto [id, is_new] = index.FindOrInsert(
        HashOf(sample), static_cast<uint32_t>(merged.size()),
        [&](uint32_t other) { return SameIdentity(merged[other], sample); });
    if (is_new) {
      merged.push_back(sample);
    } else {
      merged[id].count += sample.count;
      merged[id].value += sample.value;
    }
  };
  std::ranges::for_each(into, add);
  std::ranges::for_each(interval, add);
  into = std::move(merged);
}

// An id for frames whose own one is taken by others: derived from the frames,
// so that the same stack finds the same id again in the next interval. Without
// a secret, as captures are the same in each process; nobody knows a way to
// many stacks of one number even so.
StackId OtherId(const RawStackTable& stacks, const PackedStack& stack) {
  ksym::SipHash<2, 4> hash(ksym::HashKey{});
  hash.Add(static_cast<uint64_t>(stack.end) * 2 +
           (stack.used_frame_pointers ? 1 : 0));
  ForEachFrame(stack, [&](const RawFrame& frame) {
    hash.Add(frame.kind).Add(frame.unit).Add(frame.value);
  });
  for (StackId id = hash.Finish();; ++id) {
    if (id < kFirstStackId) id = kFirstStackId;
    const auto other = stacks.Find(id);
    if (!other || *other == stack) return id;
  }
}

// Returns the ids that changed.
std::unordered_map<StackId, StackId> MergeStacks(
    RawStackTable& into, const RawStackTable& interval) {
  std::unordered_map<StackId, StackId> renamed;
  std::vector<StackId> conflicts;
  for (const StackId id : interval.ids()) {
    const PackedStack stack = interval.GetPacked(id);
    if (!into.Add(id, stack) && into.Find(id) != stack) conflicts.push_back(id);
  }
  // In the ids' order, or the result would depend on the other one's.
  std::ranges::sort(conflicts);
  for (const StackId id : conflicts) {
    const PackedStack stack = interval.GetPacked(id);
    renamed[id] = OtherId(into, stack);
    into.Add(renamed[id], stack);
  }
  return renamed;
}

void RenameStacks(const std::unordered_map<StackId, StackId>& renamed,
                  StackId& user, StackId& kernel) {
  for (StackId* id : {&user, &kernel}) {
    const auto it = renamed.find(*id);
    if (it != renamed.end()) *id = it->second;
  }
}

// Both lists are sorted and free of overlaps.
void MergeMappings(std::vector<Mapping>& into, std::vector<Mapping>&& later) {
  if (into == later) return;
  std::vector<Mapping> kept;
  auto next = later.begin();
  for (Mapping& mapping : into) {
    while (next != later.end() && next->end <= mapping.start) ++next;
    const bool overlaps = next != later.end() && next->start < mapping.end;
    // What overlaps was unmapped for what is there later.
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

// Whether some address means one thing in one list and another in the other.
bool Contradict(const std::vector<Mapping>& a, const std::vector<Mapping>& b) {
  auto next = b.begin();
  for (const Mapping& mapping : a) {
    while (next != b.end() && next->end <= mapping.start) ++next;
    for (auto at = next; at != b.end() && at->start < mapping.end; ++at) {
      if (!ksym::HaveSameBytes(mapping, *at)) return true;
    }
  }
  return false;
}

using Images = std::map<ksym::ProcessId, ksym::ProcessImage>;

// An id whose address space agrees with `mappings`: the own one, or one that
// no process has, because none calls exec so often.
ksym::ProcessId AgreeingId(const Images& images, ksym::ProcessId id,
                           const std::vector<Mapping>& mappings) {
  constexpr uint32_t kMoreThanAnyExecs = 0x80000000;
  const uint32_t first = id.exec_count + kMoreThanAnyExecs;
  for (uint32_t other = first;; ++other) {
    const auto at = images.find(id);
    if (at == images.end() || !Contradict(at->second.mappings, mappings)) {
      return id;
    }
    id.exec_count = other;
  }
}

// Returns the ids that changed.
std::map<ksym::ProcessId, ksym::ProcessId> MergeImages(Images& into,
                                                       Images&& interval) {
  std::map<ksym::ProcessId, ksym::ProcessId> renamed;
  for (auto& [own, image] : interval) {
    const ksym::ProcessId id = AgreeingId(into, own, image.mappings);
    if (id != own) renamed.emplace(own, id);
    MergeMappings(into[id].mappings, std::move(image.mappings));
    into[id].id = id;
  }
  return renamed;
}

// `interval`: with the ids of `into`. One id for two wakers is that of neither:
// nobody can tell which of them a stack means.
void MergeWakers(RawWakers& into, RawWakers&& interval) {
  for (auto& [id, waker] : interval) {
    const auto [at, is_new] = into.try_emplace(id, waker);
    if (!is_new && at->second != waker) into.erase(at);
  }
}

void MergeMetadata(CaptureMetadata& into, CaptureMetadata&& interval) {
  const uint64_t end = interval.start_unix_ns + interval.duration_ns;
  if (end > into.start_unix_ns + into.duration_ns) {
    into.duration_ns = end - into.start_unix_ns;
    into.unwind_tables = interval.unwind_tables;
  }
  for (std::string& warning : interval.warnings) {
    if (std::ranges::find(into.warnings, warning) == into.warnings.end()) {
      into.warnings.push_back(std::move(warning));
    }
  }
}

// A function whose name was still being read when an interval ended is the same
// one in the next, where it has its name.
void MergeRuntimeFrames(RuntimeFrameTable& into, RuntimeFrameTable&& frames) {
  into.merge(frames);
  // Those that were there before are left.
  for (auto& [id, frame] : frames) {
    RuntimeFrame& known = into.at(id);
    if (known.name.empty()) known = std::move(frame);
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
  MergeRuntimeFrames(into.runtime_frames, std::move(interval.runtime_frames));
  // Stacks and images come before what refers to them by id, as some of them
  // get another one here.
  const auto renamed = MergeStacks(into.stacks, interval.stacks);
  if (!renamed.empty()) {
    for (RawSample& sample : interval.samples) {
      RenameStacks(renamed, sample.user_stack, sample.kernel_stack);
    }
    for (auto& [id, waker] : interval.wakers) {
      RenameStacks(renamed, waker.user_stack, waker.kernel_stack);
    }
  }
  const auto others = MergeImages(into.images, std::move(interval.images));
  for (RawSample& sample : interval.samples) {
    const auto it = others.find(sample.process);
    if (it != others.end()) sample.process = it->second;
  }
  for (auto& [id, waker] : interval.wakers) {
    const auto it = others.find(waker.process);
    if (it != others.end()) waker.process = it->second;
  }
  MergeWakers(into.wakers, std::move(interval.wakers));
  // As the images of others are, for those that have one.
  const auto renamed_process = [&](const ksym::ProcessId& process) {
    const auto it = others.find(process);
    return it == others.end() ? process : it->second;
  };
  for (auto& [process, cgroup] : interval.cgroups) {
    into.cgroups[renamed_process(process)] = std::move(cgroup);
  }
  for (auto& [process, labels] : interval.labels) {
    into.labels[renamed_process(process)] = std::move(labels);
  }
  MergeSamples(into.samples, interval.samples);
  std::ranges::move(interval.kernel_changes,
                    std::back_inserter(into.kernel_changes));
  into.kernel_table_stale |= interval.kernel_table_stale;
}

}  // namespace profd
