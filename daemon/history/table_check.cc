// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/table_check.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "daemon/history/limits.h"
#include "daemon/history/words.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

using Depth = uint16_t;
static_assert(kMaxStackDepth < std::numeric_limits<Depth>::max());

// Gives the number of functions of each stack.
Result<std::vector<Depth>> CheckNodes(const Tables& tables) {
  std::vector<Depth> depths(tables.nodes.size());
  for (size_t i = 1; i < tables.nodes.size(); ++i) {
    // AppendColumns() has checked that a parent comes before its children.
    depths[i] = static_cast<Depth>(depths[tables.nodes[i].parent] + 1);
    if (depths[i] > kMaxStackDepth) {
      return Fail(ErrorCode::kCorrupt, "has a stack that is too deep");
    }
  }
  return depths;
}

uint64_t CountSteps(const Tables& tables, const std::vector<Depth>& depths) {
  uint64_t steps = 0;
  const Row* last = nullptr;
  for (const Row& row : tables.rows) {
    // Rows are sorted as we write them: a stack that is there again follows
    // itself.
    if (last == nullptr || last->series != row.series ||
        last->user != row.user || last->kernel != row.kernel) {
      steps += uint64_t{depths[row.user]} + depths[row.kernel];
    }
    last = &row;
  }
  return steps;
}

Status CheckPartsAndRows(const Tables& tables) {
  const PartAccountings accountings(tables);
  if (!accountings.knows_all()) {
    return Fail(ErrorCode::kUnsupported, "has a counter that is not known");
  }
  std::vector<uint64_t> emitted;
  emitted.reserve(tables.parts.size());
  for (const Part& part : tables.parts) {
    emitted.push_back(accountings.SamplesOf(part));
  }
  for (const Row& row : tables.rows) {
    const Setting& setting = tables.settings[tables.parts[row.part].setting];
    const uint32_t kind = tables.series[row.series].kind;
    if (kind < setting.first_kind ||
        kind - setting.first_kind >= setting.kinds) {
      return Fail(ErrorCode::kCorrupt, "has a sample of no kind of its part");
    }
    if (row.count > emitted[row.part]) {
      return Fail(ErrorCode::kCorrupt, "has more samples than were taken");
    }
    emitted[row.part] -= row.count;
  }
  return {};
}

}  // namespace

Status CheckFunctions(const Tables& tables) {
  // A file has those of one object and kind beside each other.
  const auto words_of = [](const Function& function) {
    return std::tie(function.kind, function.flags, function.object,
                    function.reason);
  };
  const Function* before = nullptr;
  for (const Function& function : tables.functions) {
    if (before != nullptr && words_of(*before) == words_of(function)) continue;
    before = &function;
    if (KindOfFunction(tables, function) == nullptr ||
        !FindReason(tables.strings.Get(function.reason))) {
      return Fail(ErrorCode::kUnsupported,
                  "has a kind of frame, or a reason for a missing name, "
                  "that is not known");
    }
  }
  return {};
}

Status CheckTables(const Tables& tables) {
  if (auto known = CheckFunctions(tables); !known) return known;
  const auto depths = CheckNodes(tables);
  if (!depths) return Fail(depths.error());
  if (CountSteps(tables, *depths) > kMaxStackSteps) {
    return Fail(ErrorCode::kCorrupt, "has too many deep stacks");
  }
  return CheckPartsAndRows(tables);
}

uint64_t StackSteps(const Tables& tables) {
  const auto depths = CheckNodes(tables);
  return depths ? CountSteps(tables, *depths) : 0;
}

PartAccountings::PartAccountings(const Tables& tables)
    : tables_(tables),
      numbers_(tables.strings.size()),
      taken_(FindCounter(kTakenCounter).value_or(0) + 1),
      emitted_(FindCounter(kEmittedCounter).value_or(0) + 1) {
  for (const Counter& counter : tables.counters) {
    size_t& number = numbers_[counter.name];
    if (number != 0) continue;
    const auto found = FindCounter(tables.strings.Get(counter.name));
    if (!found) {
      knows_all_ = false;
      return;
    }
    number = *found + 1;
  }
}

uint64_t PartAccountings::SamplesOf(const Part& part) const {
  uint64_t taken = 0, emitted = 0;
  for (const Counter& counter :
       std::span(tables_.counters).subspan(part.first_counter, part.counters)) {
    const size_t number = numbers_[counter.name];
    if (number == taken_) taken = counter.value;
    if (number == emitted_) emitted = counter.value;
  }
  return std::min(taken, emitted);
}

Accounting PartAccountings::Of(const Part& part) const {
  Accounting accounting;
  const std::vector<uint64_t*> counters = CountersIn(accounting);
  for (uint32_t at = 0; at < part.counters; ++at) {
    const Counter& counter = tables_.counters[part.first_counter + at];
    if (const size_t number = numbers_[counter.name]; number != 0) {
      *counters[number - 1] = counter.value;
    }
  }
  return accounting;
}

const FrameKind* KindOfFunction(const Tables& tables,
                                const Function& function) {
  return FindKindOfFunction(tables.strings.Get(function.kind), function.flags,
                            tables.strings.Get(function.object));
}

SampleKind SampleKindOf(const Tables& tables, const Kind& kind) {
  return {.name = std::string(tables.strings.Get(kind.name)),
          .unit = std::string(tables.strings.Get(kind.unit)),
          .event = std::string(tables.strings.Get(kind.event)),
          .frequency_hz = kind.frequency_hz,
          .count_period = kind.count_period,
          .has_values = kind.has_values != 0};
}

}  // namespace profd::history
