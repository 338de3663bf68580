// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/words.h"

#include <functional>

#include "daemon/history/tables.h"

namespace profd::history {
namespace {

// Calls `call` with each number's name and place, until it returns true.
// Whether it did.
template <typename AccountingType, typename Call>
bool FindCounter(AccountingType& accounting, const Call& call) {
  if (call("taken", accounting.taken) || call("emitted", accounting.emitted) ||
      call("helped-by-frame-pointers", accounting.helped_by_frame_pointers) ||
      call("hints-dropped", accounting.processes.hints_dropped) ||
      call("reports-lost", accounting.processes.reports_lost) ||
      call("histories-dropped", accounting.processes.histories_dropped) ||
      call("time-enabled-ns", accounting.time_enabled_ns) ||
      call("time-running-ns", accounting.time_running_ns)) {
    return true;
  }
  const auto find = [&](const std::string& prefix, auto& numbers,
                        auto name_of) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (call(prefix + std::string(name_of(i)), numbers[i])) return true;
    }
    return false;
  };
  return find("lost ", accounting.lost_by_cause,
              [](size_t i) { return Name(static_cast<LossCause>(i)); }) ||
         find("damaged ", accounting.damaged_by_cause,
              [](size_t i) { return Name(static_cast<DamageCause>(i)); }) ||
         find("end ", accounting.user_stack_ends,
              [](size_t i) { return Name(static_cast<StackEnd>(i)); });
}

}  // namespace

uint32_t FlagsOf(const FrameKind& kind) {
  return (kind.is_in_file ? Function::kInFile : 0) |
         (kind.is_inlined ? Function::kInlined : 0);
}

const FrameKind* FindKindOfFunction(std::string_view name, uint32_t flags,
                                    std::string_view module) {
  for (const FrameKind* kind : kFrameKinds) {
    if (kind->name != name || FlagsOf(*kind) != flags) continue;
    return kind == &kKernelFrame ? KernelKindOf(module) : kind;
  }
  return nullptr;
}

std::optional<ksym::Unresolved> FindReason(std::string_view name) {
  constexpr auto kReasons =
      static_cast<unsigned>(ksym::Unresolved::kNotInTime) + 1;
  for (unsigned i = 0; i < kReasons; ++i) {
    const auto reason = static_cast<ksym::Unresolved>(i);
    if (ksym::UnresolvedName(reason) == name) return reason;
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, uint64_t>> CountersOf(
    const Accounting& accounting) {
  std::vector<std::pair<std::string, uint64_t>> counters;
  FindCounter(accounting, [&](const std::string& name, uint64_t value) {
    if (value != 0) counters.emplace_back(name, value);
    return false;
  });
  return counters;
}

bool SetCounter(std::string_view name, uint64_t value, Accounting& accounting) {
  return FindCounter(accounting, [&](const std::string& other, uint64_t& to) {
    if (other != name) return false;
    to = value;
    return true;
  });
}

}  // namespace profd::history
