// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/queries.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "daemon/history/flame_adder.h"
#include "daemon/history/range_profile.h"
#include "daemon/history/table_check.h"

namespace profd::history {
namespace {

using ksym::Fail;
using ksym::Result;

// `adder` is made anew at each beginning.
template <typename Adder, typename Make>
Result<FilesRead> AddFiles(const std::string& folder,
                           const Selection& selection, const Make& make,
                           std::optional<Adder>& adder,
                           const QueryBounds& bounds) {
  return ReadFiles(
      folder, selection,
      [&] {
        adder.emplace(make());
        return [&](const FileContent& file) { return adder->Add(file.tables); };
      },
      bounds.is_over);
}

HistoryAnswer AnswerOf(Profile profile, const RangeCoverage& coverage,
                       FilesRead read) {
  std::vector<std::string>& warnings = profile.metadata.warnings;
  std::ranges::copy(TextsOf(coverage), std::back_inserter(warnings));
  std::ranges::copy(read.warnings, std::back_inserter(warnings));
  return {.profile = std::move(profile),
          .coverage = coverage,
          .read = std::move(read)};
}

FileSummary SummaryOf(const FileContent& file) {
  FileSummary summary = {.name = file.name,
                         .bytes = file.bytes,
                         .torn_bytes = file.torn_bytes,
                         .coverage = {}};
  CoverageAdder coverage;
  for (const Part& part : file.tables.parts) {
    coverage.Add(file.tables, part);
    const Accounting accounting = CountersOfPart(file.tables, part);
    summary.samples += accounting.emitted;
    summary.lost += accounting.lost();
  }
  if (!file.tables.parts.empty()) {
    const Part& last = file.tables.parts.back();
    summary.from_unix_ns = file.tables.parts.front().start_unix_ns;
    summary.until_unix_ns = last.start_unix_ns + last.duration_ns;
  }
  summary.coverage = coverage.coverage();
  return summary;
}

}  // namespace

Result<HistoryAnswer> ReadRange(const std::string& folder,
                                const Selection& selection,
                                const QueryBounds& bounds) {
  std::optional<RangeProfile> range;
  auto read = AddFiles(
      folder, selection,
      [&] { return RangeProfile(selection, bounds.max_bytes); }, range, bounds);
  if (!read) return Fail(std::move(read.error()));
  const RangeCoverage coverage = range->coverage();
  return AnswerOf(std::move(*range).Finish(), coverage, std::move(*read));
}

Result<HistoryAnswer> ReadFlame(const std::string& folder,
                                const Selection& selection, size_t nodes,
                                const QueryBounds& bounds) {
  std::optional<FlameAdder> tree;
  auto read = AddFiles(
      folder, selection,
      [&] { return FlameAdder(selection, bounds.max_bytes); }, tree, bounds);
  if (!read) return Fail(std::move(read.error()));
  const RangeCoverage coverage = tree->coverage();
  return AnswerOf(std::move(*tree).Finish(nodes), coverage, std::move(*read));
}

Result<FunctionAnswer> ReadFunctions(const std::string& folder,
                                     const Selection& selection,
                                     const QueryBounds& bounds) {
  std::optional<FunctionAdder> functions;
  auto read = AddFiles(
      folder, selection,
      [&] { return FunctionAdder(selection, bounds.max_bytes); }, functions,
      bounds);
  if (!read) return Fail(std::move(read.error()));
  return FunctionAnswer{.table = std::move(*functions).Finish(),
                        .read = std::move(*read)};
}

Result<TimelineAnswer> ReadTimeline(const std::string& folder,
                                    const TimelineRequest& request,
                                    const QueryBounds& bounds) {
  const auto first = TimelineAdder::Begin(request);
  if (!first) return Fail(first.error());
  std::optional<TimelineAdder> line;
  auto read =
      AddFiles(folder, request.selection, [&] { return *first; }, line, bounds);
  if (!read) return Fail(std::move(read.error()));
  return TimelineAnswer{.line = std::move(*line).Finish(),
                        .read = std::move(*read)};
}

Result<ListingAnswer> ReadListing(const std::string& folder,
                                  const Selection& selection,
                                  const QueryBounds& bounds) {
  ListingAnswer answer;
  auto read = ReadFiles(
      folder, selection,
      [&] {
        answer.files.clear();
        return [&](const FileContent& file) -> ksym::Status {
          if (auto right = CheckTables(file.tables); !right) return right;
          answer.files.push_back(SummaryOf(file));
          return {};
        };
      },
      bounds.is_over);
  if (!read) return Fail(std::move(read.error()));
  answer.read = std::move(*read);
  return answer;
}

}  // namespace profd::history
