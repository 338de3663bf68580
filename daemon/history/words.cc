// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/words.h"

#include "daemon/history/tables.h"

namespace profd::history {
namespace {

// A counter's name in two pieces: putting them together costs more than all
// else that is done with most of them.
struct CounterName {
  std::string_view group;
  std::string_view name;

  bool Is(std::string_view text) const {
    return text.starts_with(group) && text.substr(group.size()) == name;
  }
};

// Calls `call` with each number's name and place.
template <typename AccountingType, typename Call>
void ForEachCounter(AccountingType& accounting, const Call& call) {
  call(CounterName("", kTakenCounter), accounting.taken);
  call(CounterName("", kEmittedCounter), accounting.emitted);
  call(CounterName("", "helped-by-frame-pointers"),
       accounting.helped_by_frame_pointers);
  call(CounterName("", "hints-dropped"), accounting.processes.hints_dropped);
  call(CounterName("", "reports-lost"), accounting.processes.reports_lost);
  call(CounterName("", "histories-dropped"),
       accounting.processes.histories_dropped);
  call(CounterName("", "time-enabled-ns"), accounting.time_enabled_ns);
  call(CounterName("", "time-running-ns"), accounting.time_running_ns);
  const auto call_all = [&](std::string_view group, auto& numbers,
                            auto name_of) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      call(CounterName(group, name_of(i)), numbers[i]);
    }
  };
  call_all("lost ", accounting.lost_by_cause,
           [](size_t i) { return Name(static_cast<LossCause>(i)); });
  call_all("damaged ", accounting.damaged_by_cause,
           [](size_t i) { return Name(static_cast<DamageCause>(i)); });
  call_all("end ", accounting.user_stack_ends,
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
  ForEachCounter(accounting, [&](const CounterName& name, uint64_t value) {
    if (value == 0) return;
    counters.emplace_back(std::string(name.group).append(name.name), value);
  });
  return counters;
}

std::optional<size_t> FindCounter(std::string_view name) {
  std::optional<size_t> found;
  size_t number = 0;
  const Accounting accounting;
  ForEachCounter(accounting, [&](const CounterName& other, uint64_t) {
    if (other.Is(name)) found = number;
    ++number;
  });
  return found;
}

std::vector<uint64_t*> CountersIn(Accounting& accounting) {
  std::vector<uint64_t*> counters;
  counters.reserve(sizeof(Accounting) / sizeof(uint64_t));
  ForEachCounter(accounting, [&](const CounterName&, uint64_t& counter) {
    counters.push_back(&counter);
  });
  return counters;
}

}  // namespace profd::history
