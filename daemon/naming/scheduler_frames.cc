// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/scheduler_frames.h"

namespace profd {
namespace {

constexpr std::string_view kSwitches[] = {"__schedule", "schedule_tail"};
// The kernel leaves all of .sched.text out of a sleeping thread's stack
// (in_sched_functions()). Those of locks and completions that are in it say why
// a thread waits, so they stay where they are known.
constexpr std::string_view kSleeps[] = {"do_nanosleep",
                                        "io_schedule",
                                        "io_schedule_timeout",
                                        "preempt_schedule",
                                        "preempt_schedule_common",
                                        "preempt_schedule_irq",
                                        "preempt_schedule_notrace",
                                        "schedule",
                                        "schedule_hrtimeout",
                                        "schedule_hrtimeout_range",
                                        "schedule_hrtimeout_range_clock",
                                        "schedule_idle",
                                        "schedule_preempt_disabled",
                                        "schedule_timeout",
                                        "schedule_timeout_idle",
                                        "schedule_timeout_interruptible",
                                        "schedule_timeout_killable",
                                        "schedule_timeout_uninterruptible"};
constexpr std::string_view kWakes[] = {"try_to_wake_up"};
// Frames that are looked at: the sampler's are a few.
constexpr size_t kMaxFrames = 16;

}  // namespace

SchedulerFrames SchedulerFrames::OfWaits() { return {kSwitches, kSleeps}; }

SchedulerFrames SchedulerFrames::OfWakers() { return {kWakes, {}}; }

size_t SchedulerFrames::Count(const PackedStack& stack,
                              const IsOneOf& is_one_of) {
  size_t at = 0;
  size_t found = 0;
  bool has_switch = false;
  ForEachFrame(stack, [&](const RawFrame& raw) {
    if (++at > kMaxFrames || !raw.is_address()) return;
    // Nothing else may lie between the switch and what led to it.
    if (has_switch && at != found + 1) return;
    const Part part = PartOf(raw.value, is_one_of);
    const bool is_switch = part == Part::kSwitch && !has_switch;
    const bool is_sleep = part == Part::kSleep && at == found + 1;
    if (!is_switch && !is_sleep) return;
    has_switch = has_switch || is_switch;
    found = at;
  });
  return found;
}

SchedulerFrames::Part SchedulerFrames::PartOf(uint64_t address,
                                              const IsOneOf& is_one_of) {
  const auto [known, is_new] = known_.try_emplace(address, Part::kNone);
  if (!is_new) return known->second;
  if (is_one_of(address, switches_)) {
    known->second = Part::kSwitch;
  } else if (!sleeps_.empty() && is_one_of(address, sleeps_)) {
    known->second = Part::kSleep;
  }
  return known->second;
}

}  // namespace profd
