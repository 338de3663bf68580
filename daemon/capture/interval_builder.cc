// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/interval_builder.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "bpf/profile_abi.h"
#include "daemon/capture/runtime_records.h"
#include "daemon/capture/stack_records.h"

namespace profd {
namespace {

static_assert(kNoStack == PROFILE_STACK_NONE);
static_assert(kFaultedStack == PROFILE_STACK_FAULT);
static_assert(kCollidedStack == PROFILE_STACK_COLLIDED);
static_assert(kFirstStackId == PROFILE_STACK_FIRST_ID);

std::string CommOf(const profile_key& key) {
  return {key.comm, ::strnlen(key.comm, sizeof(key.comm))};
}

ksym::ProcessId ProcessOf(const profile_key& key) {
  return {key.tgid, key.exec_count, key.start_ns};
}

}  // namespace

void IntervalBuilder::Add(const SampledCount& counted) {
  const profile_key& key = counted.key;
  const auto& [object, stacks, runtimes, watch] = sources_;
  const uint32_t set = taken_.set;
  const RuntimeNames& names = runtimes.names();
  if (!stacks.Take(object, {set, key.user_stack}, names, profile_) ||
      !stacks.Take(object, {set, key.kernel_stack}, names, profile_)) {
    constexpr auto kMissing = static_cast<size_t>(LossCause::kStackMissing);
    profile_.accounting.lost_by_cause[kMissing] += counted.count;
    return;
  }
  RawSample sample = {.process = ProcessOf(key),
                      .tid = key.tid,
                      .kind = counted.kind,
                      .comm = CommOf(key),
                      .user_stack = key.user_stack,
                      .kernel_stack = key.kernel_stack,
                      .count = counted.count,
                      .value = counted.value};
  CountStackEnds(sample, profile_);
  // Within execve a sample can have the new program's key and the old one's
  // addresses: its frames tell which of the two it is of.
  if (key.user_stack >= kFirstStackId) {
    const auto frames = profile_.stacks.Get(key.user_stack).frames;
    const auto answer = watch.Find(sample.process, frames, taken_);
    AddImage(sample.process, answer);
    sample.process = answer.id;
  }
  profile_.accounting.emitted += counted.count;
  profile_.samples.push_back(std::move(sample));
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
  auto mappings = sources_.watch.MappingsOf(answer);
  if (mappings.empty()) return;
  images[answer.id] = {.id = answer.id, .mappings = std::move(mappings)};
}

}  // namespace profd
