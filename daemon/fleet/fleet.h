// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/fleet/answers.h"
#include "daemon/fleet/clickhouse.h"
#include "daemon/fleet/question.h"
#include "daemon/fleet/stack_cache.h"
#include "daemon/history/queries.h"
#include "ksym/base/result.h"

namespace profd::fleet {

// How long an answer of a fleet may take, and how much memory.
struct FleetBounds {
  std::chrono::steady_clock::time_point deadline = {};
  size_t max_bytes = 0;  // of what is put together
  std::function<bool()> is_over = [] { return false; };
};

struct TimelineWanted {
  By by = By::kAll;
  uint32_t step = 0;       // seconds, kLeastStep at least
  uint32_t rows = 0;       // the largest; the others are one row behind them
  bool has_lanes = false;  // of all kinds of samples
};

struct NamesAnswer {
  std::vector<NameSum> names;  // the largest first
  std::string kind;
  std::string unit;  // of all values
  uint64_t known_ns = 0;
};

// The questions that a history answers of one machine, of many machines whose
// samples are in a database. Answers are those of a history. Thread-safe.
class Fleet {
 public:
  // Services send intervals of this many seconds.
  static constexpr uint32_t kLeastStep = 10;
  static constexpr uint32_t kMaxSteps = 11'000;
  static constexpr uint32_t kMaxRows = 100;
  static constexpr uint32_t kMaxLaneRows = 25;
  // Stacks that are told apart in an answer: the largest. The others are
  // "[other commands]"; those that could not be fetched in time are
  // "[rare callees]" of their commands.
  static constexpr uint32_t kMaxStacks = 131'072;
  static constexpr uint32_t kMaxNames = 1000;
  // Stacks that are asked for at once.
  static constexpr size_t kMaxAskedStacks = 4096;
  // Bytes of an answer of the database.
  static constexpr size_t kMaxSumsBytes = size_t{24} << 20;
  static constexpr size_t kMaxStacksBytes = size_t{16} << 20;
  static constexpr size_t kMaxSmallBytes = size_t{4} << 20;
  static constexpr size_t kCacheBytes = size_t{96} << 20;

  explicit Fleet(ClickHouse database)
      : database_(std::move(database)), cache_(kCacheBytes) {}

  // All fail where the database does (ClickHouse::Ask), with kCorrupt where its
  // answer makes no sense, with kInvalid where no samples are of the kind that
  // is asked for, and with kNotFound where nothing is known of the time; but a
  // time line, which says so in each of its steps.
  ksym::Result<history::TimelineAnswer> ReadTimeline(
      const Question& question, const TimelineWanted& wanted,
      const FleetBounds& bounds);
  ksym::Result<history::FunctionAnswer> ReadFunctions(
      const Question& question, const FleetBounds& bounds);
  ksym::Result<history::HistoryAnswer> ReadFlame(const Question& question,
                                                 size_t nodes,
                                                 const FleetBounds& bounds);
  ksym::Result<history::HistoryAnswer> ReadRange(const Question& question,
                                                 const FleetBounds& bounds);
  ksym::Result<NamesAnswer> ReadNames(const Question& question, By by,
                                      const FleetBounds& bounds);

  const StackCache& cache() const { return cache_; }

 private:
  class Reader;

  const ClickHouse database_;
  StackCache cache_;
};

}  // namespace profd::fleet
