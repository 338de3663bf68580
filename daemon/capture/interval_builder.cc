// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/interval_builder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "bpf/profile_abi.h"
#include "daemon/capture/runtime_records.h"
#include "daemon/capture/stack_records.h"
#include "daemon/capture/waker_records.h"

namespace profd {
namespace {

static_assert(kNoStack == PROFILE_STACK_NONE);
static_assert(kFaultedStack == PROFILE_STACK_FAULT);
static_assert(kCollidedStack == PROFILE_STACK_COLLIDED);
static_assert(kFirstStackId == PROFILE_STACK_FIRST_ID);

// Parts may wait for a symbolizer that hangs, so their images are bounded. An
// image with more mappings than this has those alone that its stacks lead to.
// So has each image once the whole ones have as many together as the second
// bound says.
constexpr size_t kMaxWholeImage = 256;
constexpr size_t kMaxWholeMappings = 8192;

Comm CommOf(const profile_key& key) {
  return Comm({key.comm, sizeof(key.comm)});
}

}  // namespace

void IntervalBuilder::Add(const SampledCount& counted) {
  const profile_key& key = counted.key;
  const auto& [object, stacks, runtimes, wakers, watch] = sources_;
  const uint32_t set = taken_.set;
  if (!stacks.Take(object, {set, key.user_stack}, runtimes, profile_) ||
      !stacks.Take(object, {set, key.kernel_stack}, runtimes, profile_)) {
    constexpr auto kMissing = static_cast<size_t>(LossCause::kStackMissing);
    profile_.accounting.lost_by_cause[kMissing] += counted.count;
    return;
  }
  RawSample sample = {.process = ProcessOf(key),
                      .tid = key.tid,
                      .kind = counted.kind,
                      .slice = SliceOf(key),
                      .comm = CommOf(key),
                      .user_stack = key.user_stack,
                      .kernel_stack = key.kernel_stack,
                      .count = counted.count,
                      .value = counted.value};
  CountStackEnds(sample, profile_);
  sample.process = FindProcess(sample.process, key.user_stack);
  profile_.accounting.emitted += counted.count;
  profile_.samples.push_back(sample);
}

TimeSlice IntervalBuilder::SliceOf(const profile_key& key) const {
  // Waits lasted for longer than a slice.
  if (!sources_.object.tells_slices() || key.kind != PROFILE_KIND_CPU) {
    return kNoSlice;
  }
  return clock_.SliceOfKey(key.slice);
}

// Within execve a sample can have the new program's key and the old one's
// addresses: its frames tell which of the two it is of.
ksym::ProcessId IntervalBuilder::FindProcess(const ksym::ProcessId& asked,
                                             StackId user_stack) {
  if (user_stack < kFirstStackId) return asked;
  const auto frames = profile_.stacks.Get(user_stack).frames;
  const auto answer = sources_.watch.Find(asked, frames, taken_);
  AddImage(asked, answer);
  return answer.id;
}

uint64_t IntervalBuilder::AddWakers() {
  const size_t named = profile_.wakers.size();
  for (auto at = profile_.wakers.begin(); at != profile_.wakers.end();) {
    at = FillWaker(at->first, at->second) ? std::next(at)
                                          : profile_.wakers.erase(at);
  }
  return named - profile_.wakers.size();
}

bool IntervalBuilder::FillWaker(WakerId id, RawWaker& waker) {
  const auto& [object, stacks, runtimes, wakers, watch] = sources_;
  const profile_key* key = wakers.Find(taken_.set, id);
  if (key == nullptr ||
      !stacks.Take(object, {taken_.set, key->user_stack}, runtimes, profile_) ||
      !stacks.Take(object, {taken_.set, key->kernel_stack}, runtimes,
                   profile_)) {
    return false;
  }
  waker = {.is_interrupt = key->kind == PROFILE_KIND_INTERRUPT,
           .process = FindProcess(ProcessOf(*key), key->user_stack),
           .tid = key->tid,
           .comm = CommOf(*key),
           .user_stack = key->user_stack,
           .kernel_stack = key->kernel_stack};
  return true;
}

// Once per process: it is a copy. The mappings that its own samples lead to
// come before those that samples of the next program lead to, taken within
// execve.
void IntervalBuilder::AddImage(const ksym::ProcessId& asked,
                               const ProcessWatch::Answer& answer) {
  auto& images = profile_.images;
  const bool is_own = asked == answer.id;
  if (is_own ? !has_own_image_.insert(asked).second
             : images.contains(answer.id)) {
    return;
  }
  const size_t count = sources_.watch.CountMappings(answer);
  if (count > kMaxWholeImage || whole_mappings_ + count > kMaxWholeMappings) {
    large_[answer.id] = answer;
    images[answer.id] = {.id = answer.id, .mappings = {}};
    return;
  }
  auto mappings = sources_.watch.MappingsOf(answer);
  if (mappings.empty()) return;
  whole_mappings_ += count;
  large_.erase(answer.id);
  images[answer.id] = {.id = answer.id, .mappings = std::move(mappings)};
}

// After the last stack is known.
void IntervalBuilder::AddMappingsInUse() {
  std::map<ksym::ProcessId, std::vector<ksym::Address>> used;
  const auto note = [&](const ksym::ProcessId& process, StackId stack) {
    if (stack < kFirstStackId || !large_.contains(process)) return;
    auto& addresses = used[process];
    ForEachFrame(profile_.stacks.GetPacked(stack), [&](const RawFrame& frame) {
      if (!frame.is_address()) return;
      // A return address may be the first one behind its mapping.
      addresses.push_back({frame.value - 1});
      addresses.push_back({frame.value});
    });
  };
  for (const RawSample& sample : profile_.samples) {
    note(sample.process, sample.user_stack);
  }
  for (const auto& [id, waker] : profile_.wakers) {
    note(waker.process, waker.user_stack);
  }
  for (auto& [process, addresses] : used) {
    std::ranges::sort(addresses);
    const auto doubles = std::ranges::unique(addresses);
    addresses.erase(doubles.begin(), doubles.end());
    profile_.images[process].mappings =
        sources_.watch.MappingsOf(large_.at(process), addresses);
  }
}

RawProfile IntervalBuilder::Finish() && {
  if (!large_.empty()) AddMappingsInUse();
  return std::move(profile_);
}

}  // namespace profd
