// SPDX-License-Identifier: Apache-2.0
// Any bytes as the rows of a fleet's database: the first byte says which query
// they answer. Whatever they are, they are rows that make sense, or refused.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/fleet/answers.h"
#include "daemon/fleet/coverage.h"
#include "daemon/fleet/stack_cache.h"
#include "daemon/fleet/stack_feeder.h"
#include "daemon/fleet/timeline_rows.h"
#include "daemon/history/limits.h"
#include "daemon/history/table_check.h"

namespace {

using namespace profd::fleet;

const Question kHour = {.from = 1'000'000, .until = 1'003'600};
constexpr uint32_t kStep = 60;

profd::SampleKind KindOf(std::string_view name) {
  profd::SampleKind kind;
  kind.name = name;
  kind.has_values = true;
  return kind;
}

void Check(bool holds) {
  if (!holds) std::abort();
}

void ReadCoverageRows(std::string_view bytes) {
  const auto rows = ReadCoverage(bytes);
  if (!rows) return;
  const auto coverage = Coverage::Of(*rows, kHour, kStep);
  if (!coverage) return;
  Check(coverage->steps.size() == 60);
  for (const Coverage::Step& step : coverage->steps) {
    Check(step.known_ns <= kStep * uint64_t{1'000'000'000});
    Check(step.lost <= step.taken);
  }
}

void ReadCellRows(std::string_view bytes) {
  const auto cells = ReadCells(bytes);
  if (!cells) return;
  Coverage coverage;
  coverage.steps.resize(60);
  TimelineRows line(coverage, kHour, kStep);
  const std::vector<profd::SampleKind> kinds = {KindOf("cpu"),
                                                KindOf("blocked")};
  line.SetKinds(kinds, kinds[0], true);
  if (!line.AddRows({.names = 2, .largest = {"a", "b"}}, *cells)) return;
  const auto made = std::move(line).Finish();
  for (const auto& row : made.rows) {
    Check(row.values.size() == 60 && row.others.size() == 1);
  }
}

// What is read goes through the cache and becomes tables.
void ReadStackRows(std::string_view bytes) {
  StackCache cache(size_t{1} << 16);
  StackFeeder feeder({.kind = KindOf("cpu"), .from_unix_ns = 1, .known_ns = 10},
                     [](const profd::history::Tables& tables) {
                       Check(profd::history::CheckTables(tables).has_value());
                       return ksym::Status();
                     });
  (void)ReadStacks(bytes, [&](const StoredStack& stack) {
    Check(stack.frames.size() <= profd::history::kMaxStackDepth);
    cache.Add(stack.stack, stack.frames);
    const bool found =
        cache.Find(stack.stack, [&](std::span<const StackFrame> frames) {
          (void)feeder.Add({.stack = stack.stack, .count = 1, .value = 2},
                           frames);
        });
    Check(found);
  });
  (void)feeder.Finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1,
                               size - 1);
  switch (data[0] % 8) {
    case 0:
      ReadCoverageRows(bytes);
      break;
    case 1:
      (void)ReadKinds(bytes);
      break;
    case 2:
      (void)ReadRowNames(bytes);
      break;
    case 3:
      ReadCellRows(bytes);
      break;
    case 4:
      (void)ReadStackSums(bytes);
      break;
    case 5:
      (void)ReadWholeSum(bytes);
      break;
    case 6:
      (void)ReadNameSums(bytes);
      break;
    default:
      ReadStackRows(bytes);
  }
  return 0;
}
