// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/queries.h"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "daemon/history/flame_adder.h"
#include "daemon/history/range_profile.h"
#include "daemon/history/summary.h"
#include "daemon/history/table_check.h"
#include "daemon/profile/kind_select.h"

namespace profd::history {
namespace {

using ksym::Fail;
using ksym::Result;

// An adder with all files of a time.
template <typename Adder>
struct Added {
  std::unique_ptr<Adder> adder;
  FilesRead read;
};

// `make` gives the adder, anew at each beginning.
template <typename Make>
auto AddFiles(const std::string& directory, const FilesWanted& wanted,
              const QueryBounds& bounds, const Make& make)
    -> Result<Added<std::invoke_result_t<Make>>> {
  using Adder = std::invoke_result_t<Make>;
  std::unique_ptr<Adder> adder;
  auto read = ReadFiles(
      directory, wanted,
      [&] {
        adder = std::make_unique<Adder>(make());
        return [&](const FileContent& file) -> ksym::Status {
          if constexpr (requires {
                          adder->AddFlames(file.tables, *file.flames);
                        }) {
            if (file.flames) {
              return adder->AddFlames(file.tables, *file.flames);
            }
          }
          return adder->Add(file.tables);
        };
      },
      bounds.is_over);
  if (!read) return Fail(std::move(read.error()));
  return Added<Adder>{.adder = std::move(adder), .read = std::move(*read)};
}

HistoryAnswer AnswerOf(Profile profile, const RangeCoverage& coverage,
                       FilesRead read) {
  std::vector<std::string>& warnings = profile.metadata.warnings;
  std::ranges::copy(TextsOf(coverage), std::back_inserter(warnings));
  std::ranges::copy(read.warnings, std::back_inserter(warnings));
  if (std::string text = TextOfThinning(read); !text.empty()) {
    warnings.push_back(std::move(text));
  }
  return {.profile = std::move(profile),
          .coverage = coverage,
          .read = std::move(read)};
}

// Steps that a summary's parts are short beside.
constexpr uint64_t kLeastStepOfSummary = 3 * kSummaryPartNs;

// A row of a time line is whose samples they are, whatever their stacks.
FilesWanted FilesOf(const TimelineRequest& request) {
  const Selection& selection = request.selection;
  if (!selection.function.empty()) return {selection};
  const bool is_of_cgroups = selection.command.empty() && !selection.pid &&
                             request.by != TimelineBy::kCommand &&
                             request.by != TimelineBy::kProcess;
  return {.selection = selection,
          .content = Content::kNoStacks,
          .takes_summaries = is_of_cgroups && !selection.by_slice &&
                             request.step_ns >= kLeastStepOfSummary};
}

FileSummary DescribeFile(const FileContent& file) {
  FileSummary summary = {.name = file.name,
                         .bytes = file.bytes,
                         .torn_bytes = file.torn_bytes,
                         .coverage = {}};
  for (const Thinning& thinning : file.tables.thinnings) {
    summary.is_thinned = true;
    summary.folded_stacks += thinning.stacks;
  }
  CoverageAdder coverage;
  const PartAccountings accountings(file.tables);
  for (const Part& part : file.tables.parts) {
    coverage.Add(file.tables, part);
    const Accounting accounting = accountings.Of(part);
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

// A name that no samples have would give an empty answer.
ksym::Status KnowsKindOf(const Selection& selection,
                         const RangeCoverage& coverage) {
  if (coverage.parts == 0) return {};
  return KnowsKind(selection.kind, coverage.kinds);
}

}  // namespace

Result<HistoryAnswer> ReadRange(const std::string& directory,
                                const Selection& selection,
                                const QueryBounds& bounds) {
  auto added = AddFiles(directory, {selection}, bounds, [&] {
    return RangeProfile(selection, bounds.max_bytes);
  });
  if (!added) return Fail(std::move(added.error()));
  const RangeCoverage coverage = added->adder->coverage();
  if (auto known = KnowsKindOf(selection, coverage); !known) {
    return Fail(std::move(known.error()));
  }
  return AnswerOf(std::move(*added->adder).Finish(), coverage,
                  std::move(added->read));
}

Result<HistoryAnswer> ReadFlame(const std::string& directory,
                                const Selection& selection, size_t nodes,
                                const QueryBounds& bounds) {
  const FilesWanted wanted = {
      .selection = selection,
      .takes_flames = FlameAdder::TakesFlames(selection, nodes)};
  auto added = AddFiles(directory, wanted, bounds, [&] {
    return FlameAdder(selection,
                      {.nodes = nodes, .max_bytes = bounds.max_bytes});
  });
  if (!added) return Fail(std::move(added.error()));
  const RangeCoverage coverage = added->adder->coverage();
  if (auto known = KnowsKindOf(selection, coverage); !known) {
    return Fail(std::move(known.error()));
  }
  return AnswerOf(std::move(*added->adder).Finish(), coverage,
                  std::move(added->read));
}

Result<FunctionAnswer> ReadFunctions(const std::string& directory,
                                     const Selection& selection,
                                     const QueryBounds& bounds) {
  auto added = AddFiles(directory, {selection}, bounds, [&] {
    return FunctionAdder(selection, bounds.max_bytes);
  });
  if (!added) return Fail(std::move(added.error()));
  FunctionAnswer answer = {.table = std::move(*added->adder).Finish(),
                           .read = std::move(added->read)};
  if (auto known = KnowsKindOf(selection, answer.table.coverage); !known) {
    return Fail(std::move(known.error()));
  }
  return answer;
}

Result<TimelineAnswer> ReadTimeline(const std::string& directory,
                                    const TimelineRequest& request,
                                    const QueryBounds& bounds) {
  const auto first = TimelineAdder::Begin(request);
  if (!first) return Fail(first.error());
  auto added =
      AddFiles(directory, FilesOf(request), bounds, [&] { return *first; });
  if (!added) return Fail(std::move(added.error()));
  TimelineAnswer answer = {.line = std::move(*added->adder).Finish(),
                           .read = std::move(added->read)};
  if (auto known = KnowsKindOf(request.selection, answer.line.coverage);
      !known) {
    return Fail(std::move(known.error()));
  }
  return answer;
}

Result<ListingAnswer> ReadListing(const std::string& directory,
                                  const Selection& selection,
                                  const QueryBounds& bounds) {
  ListingAnswer answer;
  auto read = ReadFiles(
      directory, {selection, Content::kNoStacks},
      [&] {
        answer.files.clear();
        return [&](const FileContent& file) -> ksym::Status {
          if (auto right = CheckTables(file.tables); !right) return right;
          answer.files.push_back(DescribeFile(file));
          return {};
        };
      },
      bounds.is_over);
  if (!read) return Fail(std::move(read.error()));
  answer.read = std::move(*read);
  return answer;
}

}  // namespace profd::history
