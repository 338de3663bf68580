// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "daemon/base/now_ns.h"
#include "daemon/fleet/coverage.h"
#include "daemon/fleet/stack_feeder.h"
#include "daemon/fleet/timeline_rows.h"
#include "daemon/history/flame_adder.h"
#include "daemon/history/function_table.h"
#include "daemon/history/range_profile.h"
#include "daemon/profile/kind_select.h"
#include "ksym/base/keyed_hash.h"

namespace profd::fleet {
namespace {

using Clock = std::chrono::steady_clock;
using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

// So many steps say well enough of how much of a time something is known.
constexpr uint32_t kCoverageSteps = 1000;

// As adders of a history are asked: all that they are given.
history::Selection AllOf(const SampleKind& kind) { return {.kind = kind.name}; }

uint32_t CoverageStep(const Question& question) {
  return std::max(Fleet::kLeastStep,
                  (question.until - question.from) / kCoverageSteps + 1);
}

}  // namespace

// One question: what it knows so far, and its bounds.
class Fleet::Reader {
 public:
  Reader(Fleet& fleet, const Question& question, const FleetBounds& bounds)
      : fleet_(fleet), question_(question), bounds_(bounds) {
    // No stacks are asked for later, so that there is time to show the others.
    const auto now = Clock::now();
    fetch_until_ = now + (bounds_.deadline - now) / 4 * 3;
  }

  // Asks how much of the time is known, and which kinds of samples there are.
  Status Begin(uint32_t step) {
    if (question_.from >= question_.until) {
      return Fail(ErrorCode::kInvalid, "the time ends before it begins");
    }
    const auto rows = Ask(CoverageSql(question_, step), kMaxSmallBytes);
    if (!rows) return Fail(rows.error());
    const auto read = ReadCoverage(*rows);
    if (!read) return Fail(read.error());
    auto coverage = Coverage::Of(*read, question_, step);
    if (!coverage) return Fail(std::move(coverage.error()));
    coverage_ = std::move(*coverage);
    return FindKinds();
  }

  const Coverage& coverage() const { return coverage_; }
  const std::vector<SampleKind>& kinds() const { return kinds_; }
  const SampleKind& kind() const { return kind_; }
  Doubles doubles() const {
    return coverage_.has_doubles ? Doubles::kMaybe : Doubles::kNone;
  }

  Result<std::string> Ask(const std::string& sql, size_t max_bytes) const {
    return AskUntil(bounds_.deadline, sql, max_bytes);
  }

  // For a question whose samples are of the one kind.
  Question OfKind() const {
    Question question = question_;
    question.kind = kind_.name;
    return question;
  }

  // Gives a time line its rows.
  Status AddRows(const TimelineWanted& wanted, TimelineRows& line) const;
  // Gives all stacks to an adder.
  Status AddStacks(const StackFeeder::Sink& sink);

  // Says what an answer lacks.
  std::vector<std::string> Warnings() const;
  history::RangeCoverage RangeOf() const {
    history::RangeCoverage range;
    range.parts = coverage_.intervals;
    range.known_ns = coverage_.known_ns;
    range.kinds = kinds_;
    return range;
  }

 private:
  Result<std::string> AskUntil(Clock::time_point deadline,
                               const std::string& sql, size_t max_bytes) const {
    return fleet_.database_.Ask(sql, {.deadline = deadline,
                                      .max_bytes = max_bytes,
                                      .is_over = bounds_.is_over});
  }

  Status FindKinds() {
    const auto rows = Ask(KindsSql(question_), kMaxSmallBytes);
    if (!rows) return Fail(rows.error());
    const auto read = ReadKinds(*rows);
    if (!read) return Fail(read.error());
    for (const KindRow& row : *read) {
      if (kinds_.size() == kMaxSampleKinds) break;
      kinds_.push_back({.name = row.name,
                        .unit = row.unit,
                        .event = {},
                        .has_values = true});
    }
    if (kinds_.empty()) return {};
    if (auto known = KnowsKind(question_.kind, kinds_); !known) return known;
    const SampleKind* const wanted = FindKind(kinds_, question_.kind);
    kind_ = wanted == nullptr ? kinds_.front() : *wanted;
    return {};
  }

  Status AddKnown(std::span<const StackSum> sums, StackFeeder& feeder,
                  std::vector<StackSum>& missing);
  Status AddMissing(std::span<const StackSum> missing, StackFeeder& feeder);
  Result<bool> Fetch(std::span<const StackSum> sums, StackFeeder& feeder);
  Status LeaveOut(const StackSum& sum, StackFeeder& feeder);
  Status AddRest(const WholeSum& shown, StackFeeder& feeder);

  Fleet& fleet_;
  const Question& question_;
  const FleetBounds& bounds_;
  Clock::time_point fetch_until_;
  Coverage coverage_;
  std::vector<SampleKind> kinds_;
  SampleKind kind_;
  uint64_t left_out_ = 0;  // samples
  uint64_t unknown_ = 0;   // the same, of stacks that are not in the database
};

Status Fleet::Reader::AddStacks(const StackFeeder::Sink& sink) {
  const Question question = OfKind();
  const auto rows =
      Ask(StackSumsSql(question, doubles(), kMaxStacks), kMaxSumsBytes);
  if (!rows) return Fail(rows.error());
  const auto sums = ReadStackSums(*rows);
  if (!sums) return Fail(sums.error());
  StackFeeder feeder({.kind = kind_,
                      .from_unix_ns = question_.from * kNsPerSecond,
                      .known_ns = coverage_.known_ns},
                     sink);
  WholeSum shown;
  for (size_t at = 0; at < sums->size(); at += kMaxAskedStacks) {
    const auto some = std::span(*sums).subspan(
        at, std::min(kMaxAskedStacks, sums->size() - at));
    std::vector<StackSum> missing;
    if (auto added = AddKnown(some, feeder, missing); !added) return added;
    if (auto added = AddMissing(missing, feeder); !added) return added;
    for (const StackSum& sum : some) {
      shown.count += sum.count;
      shown.value += sum.value;
    }
  }
  if (sums->size() >= kMaxStacks) {
    if (auto added = AddRest(shown, feeder); !added) return added;
  }
  return feeder.Finish();
}

Status Fleet::Reader::AddKnown(std::span<const StackSum> sums,
                               StackFeeder& feeder,
                               std::vector<StackSum>& missing) {
  for (const StackSum& sum : sums) {
    Status added;
    const bool is_known =
        fleet_.cache_.Find(sum.stack, [&](std::span<const StackFrame> frames) {
          added = feeder.Add(sum, frames);
        });
    if (!is_known) missing.push_back(sum);
    if (!added) return added;
  }
  return {};
}

// A batch whose names are too long is asked for in halves, so that what
// somebody calls a function hides no others.
Status Fleet::Reader::AddMissing(std::span<const StackSum> missing,
                                 StackFeeder& feeder) {
  std::deque<std::span<const StackSum>> batches;
  if (!missing.empty()) batches.push_back(missing);
  while (!batches.empty()) {
    const auto batch = batches.front();
    batches.pop_front();
    const auto is_late = [&] { return Clock::now() >= fetch_until_; };
    const auto fetched = is_late() ? Result<bool>(false) : Fetch(batch, feeder);
    if (!fetched) return Fail(fetched.error());
    if (*fetched) continue;
    if (!is_late() && batch.size() > 1) {
      batches.push_back(batch.first(batch.size() / 2));
      batches.push_back(batch.subspan(batch.size() / 2));
      continue;
    }
    for (const StackSum& sum : batch) {
      if (auto left = LeaveOut(sum, feeder); !left) return left;
    }
  }
  return {};
}

// False: the answer would be too large, or came too late.
Result<bool> Fleet::Reader::Fetch(std::span<const StackSum> sums,
                                  StackFeeder& feeder) {
  std::vector<uint64_t> stacks;
  for (const StackSum& sum : sums) stacks.push_back(sum.stack);
  std::ranges::sort(stacks);
  stacks.erase(std::ranges::unique(stacks).begin(), stacks.end());
  const auto rows =
      AskUntil(fetch_until_, StacksSql(question_, stacks), kMaxStacksBytes);
  if (!rows && rows.error().code() == ErrorCode::kLimit) return false;
  if (!rows) return Fail(rows.error());
  // Sums of one stack are of several commands.
  std::unordered_multimap<uint64_t, const StackSum*, ksym::NumberHash> wanted;
  for (const StackSum& sum : sums) wanted.emplace(sum.stack, &sum);
  Status added;
  const auto read = ReadStacks(*rows, [&](const StoredStack& stack) {
    const auto [begin, end] = wanted.equal_range(stack.stack);
    if (begin == end) return;  // nobody asked for it, or it is there twice
    fleet_.cache_.Add(stack.stack, stack.frames);
    for (auto sum = begin; sum != end && added; ++sum) {
      added = feeder.Add(*sum->second, stack.frames);
    }
    wanted.erase(begin, end);
  });
  if (!read) return Fail(read.error());
  for (const StackSum& sum : sums) {
    if (!wanted.contains(sum.stack)) continue;
    unknown_ += sum.count;
    if (added) added = feeder.AddUnshown(sum);
  }
  if (!added) return Fail(std::move(added.error()));
  return true;
}

Status Fleet::Reader::LeaveOut(const StackSum& sum, StackFeeder& feeder) {
  left_out_ += sum.count;
  return feeder.AddUnshown(sum);
}

// The stacks that are too many are known as one sum.
Status Fleet::Reader::AddRest(const WholeSum& shown, StackFeeder& feeder) {
  const auto rows = Ask(WholeSumSql(OfKind(), doubles()), kMaxSmallBytes);
  if (!rows) return Fail(rows.error());
  const auto whole = ReadWholeSum(*rows);
  if (!whole) return Fail(whole.error());
  // More may have come meanwhile, but not less.
  if (whole->count <= shown.count || whole->value < shown.value) return {};
  return LeaveOut({.stack = 0,
                   .command = history::kOtherCommands,
                   .count = whole->count - shown.count,
                   .value = whole->value - shown.value},
                  feeder);
}

std::vector<std::string> Fleet::Reader::Warnings() const {
  std::vector<std::string> warnings;
  if (coverage_.lost > 0) {
    warnings.push_back(fmt::format("{} of {} samples were lost", coverage_.lost,
                                   coverage_.taken));
  }
  if (left_out_ > 0) {
    warnings.push_back(fmt::format(
        "too many stacks, or too slow a database: {} samples of rare ones have "
        "no functions here; ask for less, or again",
        left_out_));
  }
  if (unknown_ > 0) {
    warnings.push_back(
        fmt::format("the database lacks the stacks of {} samples", unknown_));
  }
  return warnings;
}

Status Fleet::Reader::AddRows(const TimelineWanted& wanted,
                              TimelineRows& line) const {
  if (kinds_.empty()) return {};
  Question question = OfKind();
  if (wanted.has_lanes) question.kind.clear();
  const auto names = Ask(
      RowNamesSql(question, doubles(),
                  {.by = wanted.by, .kind = kind_.name, .rows = wanted.rows}),
      kMaxSmallBytes);
  if (!names) return Fail(names.error());
  auto rows = ReadRowNames(*names);
  if (!rows) return Fail(std::move(rows.error()));
  rows->largest.resize(std::min<size_t>(rows->largest.size(), wanted.rows));
  const auto cells = Ask(
      CellsSql(question, doubles(),
               {.by = wanted.by, .step = wanted.step, .rows = rows->largest}),
      kMaxSumsBytes);
  if (!cells) return Fail(cells.error());
  const auto values = ReadCells(*cells);
  if (!values) return Fail(values.error());
  return line.AddRows(std::move(*rows), *values);
}

namespace {

Status NothingKnown() {
  return Fail(ErrorCode::kNotFound,
              "nothing is known of this time: no host has sent an interval");
}

}  // namespace

Result<history::TimelineAnswer> Fleet::ReadTimeline(
    const Question& question, const TimelineWanted& wanted,
    const FleetBounds& bounds) {
  const uint32_t most = wanted.has_lanes ? kMaxLaneRows : kMaxRows;
  if (wanted.rows == 0 || wanted.rows > most) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("a time line{} has 1 to {} rows",
                            wanted.has_lanes ? " with lanes" : "", most));
  }
  if (wanted.step < kLeastStep ||
      (question.until - question.from) / wanted.step >= kMaxSteps) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("a time line has steps of {} seconds or more, and "
                            "{} at the most",
                            kLeastStep, kMaxSteps));
  }
  Reader reader(*this, question, bounds);
  if (auto begun = reader.Begin(wanted.step); !begun) {
    return Fail(std::move(begun.error()));
  }
  TimelineRows line(reader.coverage(), question, wanted.step);
  line.SetKinds(reader.kinds(), reader.kind(), wanted.has_lanes);
  if (auto added = reader.AddRows(wanted, line); !added) {
    return Fail(std::move(added.error()));
  }
  history::TimelineAnswer answer = {.line = std::move(line).Finish(),
                                    .read = {}};
  answer.line.coverage = reader.RangeOf();
  answer.read.warnings = reader.Warnings();
  return answer;
}

Result<history::FunctionAnswer> Fleet::ReadFunctions(
    const Question& question, const FleetBounds& bounds) {
  Reader reader(*this, question, bounds);
  if (auto begun = reader.Begin(CoverageStep(question)); !begun) {
    return Fail(std::move(begun.error()));
  }
  history::FunctionAdder adder(AllOf(reader.kind()), bounds.max_bytes);
  if (!reader.kinds().empty()) {
    auto added = reader.AddStacks(
        [&](const history::Tables& tables) { return adder.Add(tables); });
    if (!added) return Fail(std::move(added.error()));
  }
  history::FunctionAnswer answer = {.table = std::move(adder).Finish(),
                                    .read = {}};
  answer.table.coverage = reader.RangeOf();
  answer.read.warnings = reader.Warnings();
  return answer;
}

namespace {

// An answer with a profile, whichever adder made it.
history::HistoryAnswer AnswerOf(Profile profile,
                                history::RangeCoverage coverage,
                                std::vector<std::string> warnings) {
  profile.metadata.hostname.clear();
  std::ranges::copy(warnings, std::back_inserter(profile.metadata.warnings));
  history::HistoryAnswer answer = {.profile = std::move(profile),
                                   .coverage = std::move(coverage),
                                   .read = {}};
  answer.read.warnings = std::move(warnings);
  return answer;
}

}  // namespace

Result<history::HistoryAnswer> Fleet::ReadFlame(const Question& question,
                                                size_t nodes,
                                                const FleetBounds& bounds) {
  Reader reader(*this, question, bounds);
  if (auto begun = reader.Begin(CoverageStep(question)); !begun) {
    return Fail(std::move(begun.error()));
  }
  if (reader.kinds().empty()) return Fail(NothingKnown().error());
  history::FlameAdder adder(AllOf(reader.kind()),
                            {.nodes = nodes, .max_bytes = bounds.max_bytes});
  auto added = reader.AddStacks(
      [&](const history::Tables& tables) { return adder.Add(tables); });
  if (!added) return Fail(std::move(added.error()));
  return AnswerOf(std::move(adder).Finish(), reader.RangeOf(),
                  reader.Warnings());
}

Result<history::HistoryAnswer> Fleet::ReadRange(const Question& question,
                                                const FleetBounds& bounds) {
  Reader reader(*this, question, bounds);
  if (auto begun = reader.Begin(CoverageStep(question)); !begun) {
    return Fail(std::move(begun.error()));
  }
  if (reader.kinds().empty()) return Fail(NothingKnown().error());
  history::RangeProfile adder(AllOf(reader.kind()), bounds.max_bytes);
  auto added = reader.AddStacks(
      [&](const history::Tables& tables) { return adder.Add(tables); });
  if (!added) return Fail(std::move(added.error()));
  return AnswerOf(std::move(adder).Finish(), reader.RangeOf(),
                  reader.Warnings());
}

Result<NamesAnswer> Fleet::ReadNames(const Question& question, By by,
                                     const FleetBounds& bounds) {
  Reader reader(*this, question, bounds);
  if (auto begun = reader.Begin(CoverageStep(question)); !begun) {
    return Fail(std::move(begun.error()));
  }
  NamesAnswer answer = {.names = {},
                        .kind = reader.kind().name,
                        .unit = reader.kind().unit,
                        .known_ns = reader.coverage().known_ns};
  if (reader.kinds().empty()) return answer;
  const auto rows =
      reader.Ask(NamesSql(reader.OfKind(), reader.doubles(), by, kMaxNames),
                 kMaxSmallBytes);
  if (!rows) return Fail(rows.error());
  auto names = ReadNameSums(*rows);
  if (!names) return Fail(std::move(names.error()));
  answer.names = std::move(*names);
  return answer;
}

}  // namespace profd::fleet
