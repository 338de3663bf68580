// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/sleepers.h"

#include <iterator>
#include <utility>

namespace profd {

void Sleepers::Add(const wait_asleep_record& record, size_t bytes) {
  if (bytes < sizeof(record)) return;
  if (record.is_new != 0) {
    new_[record.tid] = record.known;
    return;
  }
  const auto at = threads_.find(record.tid);
  if (at == threads_.end()) return;
  Thread& thread = at->second;
  thread.is_found = true;
  if (record.value_ns == 0) return;
  const uint32_t set = record.header.set;
  counts_[set].push_back(
      {.key = thread.key, .count = 1, .value = record.value_ns});
  ++taken_[set];
  const ksym::ProcessId process = {thread.key.tgid, thread.key.exec_count,
                                   thread.key.start_ns};
  if (!hinted_.insert(process).second) return;
  hints_.push_back({.id = process,
                    .set = set,
                    .time_ns = record.time_ns,
                    .cgroup = record.cgroup});
}

void Sleepers::EndWalk() {
  for (auto at = threads_.begin(); at != threads_.end();) {
    // One that the walk did not meet has ended or gone on: its stack is another
    // one now.
    at = std::exchange(at->second.is_found, false) ? std::next(at) : Forget(at);
  }
}

void Sleepers::ForgetMixed() {
  for (auto at = threads_.begin(); at != threads_.end();) {
    const auto stack = stacks_.find(at->second.key.user_stack);
    at = stack->second.stored.mixed ? Forget(at) : std::next(at);
  }
}

std::vector<SampleHint> Sleepers::TakeHints() {
  hinted_.clear();
  return std::exchange(hints_, {});
}

std::vector<SampledCount> Sleepers::Take(uint32_t set, StackRecords& records,
                                         const std::vector<SleptCopy>& copies) {
  std::vector<SampledCount> counts = std::exchange(counts_[set], {});
  for (SampledCount& count : counts) {
    for (auto* id : {&count.key.user_stack, &count.key.kernel_stack}) {
      const auto stack = stacks_.find(*id);
      if (stack == stacks_.end()) continue;
      *id = records.AddKept(set, *id, stack->second.stored);
    }
  }
  for (const SleptCopy& copy : copies) Remember(copy, records);
  new_.clear();
  return counts;
}

void Sleepers::Remember(const SleptCopy& copy, const StackRecords& records) {
  const auto known = new_.find(copy.tid);
  if (known == new_.end() || threads_.contains(copy.tid)) return;
  if (threads_.size() >= kMaxKnownSleepers || stack_bytes_ >= kMaxStackBytes) {
    return;
  }
  const profile_key& key = copy.key;
  const StackRecords::Stored* const user =
      records.Find({copy.set, key.user_stack});
  if (!Keep(key.user_stack, user)) return;
  if (!Keep(key.kernel_stack, records.Find({copy.set, key.kernel_stack}))) {
    // Both or none: a count without one of its stacks would be lost.
    Drop(key.user_stack);
    return;
  }
  const auto at = threads_.emplace(copy.tid, Thread{.key = key}).first;
  if (!tell_(copy.tid, &known->second)) Forget(at);
}

// False: the stack's frames are not there. The id may be used already, by an
// equal one.
bool Sleepers::Keep(StackId id, const StackRecords::Stored* stored) {
  if (stored == nullptr) return false;
  const auto [at, is_first] = stacks_.try_emplace(id);
  Stack& stack = at->second;
  if (is_first) {
    stack.stored = *stored;
    stack_bytes_ += stored->frames.size();
  } else if (stack.stored != *stored) {
    return false;
  }
  ++stack.users;
  return true;
}

void Sleepers::Drop(StackId id) {
  const auto at = stacks_.find(id);
  if (at == stacks_.end() || --at->second.users != 0) return;
  stack_bytes_ -= at->second.stored.frames.size();
  stacks_.erase(at);
}

Sleepers::Threads::iterator Sleepers::Forget(Threads::iterator at) {
  tell_(at->first, nullptr);
  Drop(at->second.key.user_stack);
  Drop(at->second.key.kernel_stack);
  return threads_.erase(at);
}

}  // namespace profd
