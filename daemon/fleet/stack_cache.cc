// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/stack_cache.h"

#include <utility>

#include "ksym/base/keyed_hash.h"

namespace profd::fleet {

bool StackCache::Generation::Get(uint64_t stack,
                                 std::vector<StackFrame>& frames) const {
  const auto found = stacks_.find(stack);
  if (found == stacks_.end()) return false;
  frames.clear();
  const auto& [begin, size] = found->second;
  for (const uint32_t number : std::span(frames_).subspan(begin, size)) {
    const Function& function = functions_[number];
    frames.push_back({.kind = function.kind,
                      .name = strings_.Get(function.name),
                      .module = strings_.Get(function.module)});
  }
  return true;
}

void StackCache::Generation::Add(uint64_t stack,
                                 std::span<const StackFrame> frames) {
  const auto [place, is_new] = stacks_.try_emplace(
      stack, Place{.begin = frames_.size(), .size = frames.size()});
  if (!is_new) return;
  for (const StackFrame& frame : frames) frames_.push_back(NumberOf(frame));
}

uint32_t StackCache::Generation::NumberOf(const StackFrame& frame) {
  const Function function = {.kind = frame.kind,
                             .name = strings_.Intern(frame.name),
                             .module = strings_.Intern(frame.module)};
  const uint64_t hash =
      ksym::HashWords(ksym::WordOf(function.name, function.module),
                      reinterpret_cast<uintptr_t>(function.kind));
  const auto [number, is_new] = function_ids_.FindOrInsert(
      hash, static_cast<uint32_t>(functions_.size()),
      [&](uint32_t other) { return functions_[other] == function; });
  if (is_new) functions_.push_back(function);
  return number;
}

size_t StackCache::Generation::memory_bytes() const {
  constexpr size_t kNodeBytes = 48;  // of stacks_, with its bucket
  return strings_.memory_bytes() + function_ids_.memory_bytes() +
         functions_.capacity() * sizeof(Function) +
         frames_.capacity() * sizeof(uint32_t) + stacks_.size() * kNodeBytes;
}

bool StackCache::FindFrames(uint64_t stack) {
  if (young_.Get(stack, found_)) return true;
  if (!old_.Get(stack, found_)) return false;
  AddToYoung(stack, found_);
  // The texts are of the old ones, which may be gone.
  return young_.Get(stack, found_) || old_.Get(stack, found_);
}

void StackCache::Add(uint64_t stack, std::span<const StackFrame> frames) {
  const std::lock_guard lock(mutex_);
  AddToYoung(stack, frames);
}

void StackCache::AddToYoung(uint64_t stack,
                            std::span<const StackFrame> frames) {
  young_.Add(stack, frames);
  if (young_.memory_bytes() > max_bytes_ / 2) {
    old_ = std::exchange(young_, Generation());
  }
}

size_t StackCache::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  return young_.memory_bytes() + old_.memory_bytes();
}

}  // namespace profd::fleet
