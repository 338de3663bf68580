// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>

#include "daemon/profile/raw_stack_table.h"
#include "ksym/base/keyed_hash.h"

namespace profd {

// Which of the innermost frames of a kernel stack are the scheduler's, and
// those of the sampler that was called from it: a thread waits in what called
// the scheduler, and wakes others there, too. An object remembers addresses of
// one set of kernel symbols.
class SchedulerFrames {
 public:
  using Names = std::span<const std::string_view>;
  // Whether the code before a return address is of a function of these names.
  using IsOneOf = std::function<bool(uint64_t address, Names names)>;

  // For threads that waited: up to the switch of threads, and from there on
  // what says no more than that the thread gives the CPU away, such as
  // `schedule`. Stacks of threads that sleep on come from the kernel without
  // those.
  static SchedulerFrames OfWaits();
  // For those that woke others.
  static SchedulerFrames OfWakers();

  // How many frames they are. Each address is looked up once.
  size_t Count(const PackedStack& stack, const IsOneOf& is_one_of);

 private:
  enum class Part : uint8_t { kNone, kSwitch, kSleep };

  SchedulerFrames(Names switches, Names sleeps)
      : switches_(switches), sleeps_(sleeps) {}
  Part PartOf(uint64_t address, const IsOneOf& is_one_of);

  Names switches_;
  Names sleeps_;
  std::unordered_map<uint64_t, Part, ksym::NumberHash> known_;  // by address
};

}  // namespace profd
