// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of a history, what is read of it as a profile, a table of
// functions, a flame graph and a time line, two of them as one file, one
// thinned out, its summary, and its flames. Fuzzers guess neither checksums nor
// what zstd packs, so bytes that are no such file are taken as the columns of a
// record, each behind its size, and then as flames of the tables below. The
// corpus has journals, segments, also one that was thinned out, one with a
// summary and one with flames, columns as tests/daemon/history writes them, and
// flames of these tables.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

#include "daemon/history/columns.h"
#include "daemon/history/flame_adder.h"
#include "daemon/history/function_table.h"
#include "daemon/history/layout.h"
#include "daemon/history/range_profile.h"
#include "daemon/history/replacement.h"
#include "daemon/history/segment_merger.h"
#include "daemon/history/stored_flames.h"
#include "daemon/history/summary.h"
#include "daemon/history/table_check.h"
#include "daemon/history/thinning.h"
#include "daemon/history/timeline.h"
#include "ksym/base/byte_reader.h"

namespace {

using namespace profd::history;

constexpr size_t kMaxProfileBytes = size_t{64} << 20;
constexpr uint64_t kLastTime = uint64_t{1} << 62;

// Both add up to the same.
void CheckSums(const Tables& tables) {
  FunctionAdder functions({.until_unix_ns = kLastTime}, kMaxProfileBytes);
  auto line = TimelineAdder::Begin({.selection = {.until_unix_ns = kLastTime},
                                    .step_ns = kLastTime / 1000,
                                    .by = TimelineBy::kCommand,
                                    .rows = 2});
  if (!line || !functions.Add(tables) || !line->Add(tables)) return;
  const uint64_t sum = std::move(functions).Finish().sum;
  uint64_t of_rows = 0;
  for (const auto& row : std::move(*line).Finish().rows) of_rows += row.sum;
  // Sums stop at the largest number.
  constexpr uint64_t kLarge = uint64_t{1} << 60;
  if (sum < kLarge && of_rows < kLarge && sum != of_rows) std::abort();
}

// A file that is put together with itself has all twice, and one profile of it
// each.
void CheckMerge(const Tables& tables) {
  const SegmentOutline outline = {
      .sequences = {}, .most = tables.sizes(), .text_bytes = tables.text_bytes};
  if (!CheckTables(tables) || !FitTogether(outline, outline)) return;
  SegmentMerger merger;
  if (!merger.Add(tables) || !merger.Add(tables)) return;
  Tables twice = std::move(merger).Finish();
  if (twice.nodes.size() > tables.nodes.size() ||
      twice.strings.size() > tables.strings.size() ||
      twice.parts.size() != 2 * tables.parts.size() ||
      twice.count_sum != 2 * tables.count_sum || !CheckTables(twice)) {
    std::abort();
  }
  const auto segment = EncodeSegment(twice, {.first = 1, .last = 2});
  if (!segment) return;
  const auto again = DecodeSegment(*segment);
  if (!again || again->tables.rows != twice.rows ||
      again->tables.nodes != twice.nodes ||
      again->tables.cgroup_names != twice.cgroup_names) {
    std::abort();
  }
}

// What lost its rare stacks has all samples, is right, and loses no more.
void CheckThinning(const Tables& tables) {
  if (!CheckTables(tables)) return;
  Tables thin = tables;
  ThinTables(thin);
  if (TableSums(thin) != TableSums(tables) || thin.thinnings.size() != 1 ||
      thin.rows.size() > tables.rows.size() ||
      thin.nodes.size() > tables.nodes.size() || !CheckTables(thin)) {
    std::abort();
  }
  const Sizes once = thin.sizes();
  ThinTables(thin);
  if (thin.sizes() != once) std::abort();
  const auto segment = EncodeSegment(thin, {.first = 1, .last = 2});
  if (!segment) return;
  const auto again = DecodeSegment(*segment);
  // Two functions more than there were may be too many.
  if (!again && again.error().code() == ksym::ErrorCode::kLimit) return;
  if (!again || again->tables.rows != thin.rows ||
      again->tables.nodes != thin.nodes ||
      again->tables.thinnings != thin.thinnings) {
    std::abort();
  }
}

uint64_t CountIn(const profd::Profile& flame) {
  uint64_t count = 0;
  for (const auto& sample : flame.samples) count += sample.count;
  if (count > flame.accounting.emitted) std::abort();
  return count;
}

uint64_t SumOfFlame(const Tables& tables, size_t nodes) {
  FlameAdder adder({.until_unix_ns = kLastTime},
                   {.nodes = nodes, .max_bytes = kMaxProfileBytes});
  for (int i = 0; i < 2; ++i) {
    if (!adder.Add(tables)) return 0;
  }
  return CountIn(std::move(adder).Finish());
}

// A graph of flames shows no more samples than they say there were.
profd::Profile ShowFlames(const Tables& tables, const StoredFlames& flames) {
  FlameAdder adder({}, {.nodes = 100, .max_bytes = kMaxProfileBytes});
  if (!adder.AddFlames(tables, flames)) return {};
  profd::Profile flame = std::move(adder).Finish();
  (void)CountIn(flame);
  return flame;
}

// Flames that are made are read as they were, and show what rows show.
void CheckFlames(const Tables& whole) {
  Tables tables = whole;
  if (!CheckTables(tables)) return;
  const auto flames = FlamesOf(tables);
  if (!flames) return;
  const auto segment =
      EncodeSegment(tables, {.first = 1, .last = 1}, {.flames = &*flames});
  if (!segment) return;
  const auto read = DecodeSegment(*segment, Content::kFlames);
  // A few names of counters more may be too many.
  if (!read && read.error().code() == ksym::ErrorCode::kLimit) return;
  if (!read || !read->flames || *read->flames != *flames) std::abort();
  FlameAdder adder({}, {.nodes = 100, .max_bytes = kMaxProfileBytes});
  if (!adder.Add(tables)) return;
  const profd::Profile of_rows = std::move(adder).Finish();
  const profd::Profile shown = ShowFlames(read->tables, *read->flames);
  if (of_rows.accounting != shown.accounting ||
      of_rows.samples.size() != shown.samples.size() ||
      CountIn(of_rows) != CountIn(shown) ||
      of_rows.metadata.warnings != shown.metadata.warnings) {
    std::abort();
  }
}

// No sample is lost, however few nodes there may be.
void CheckFlame(const Tables& tables) {
  if (SumOfFlame(tables, 4) != SumOfFlame(tables, 10'000)) std::abort();
}

uint64_t SumOfRows(const Tables& tables) {
  uint64_t count = 0;
  for (const Row& row : tables.rows) count += row.count;
  return count;
}

std::string_view SummaryIn(std::string_view segment,
                           const SegmentOutline& outline) {
  return segment.substr(std::min(outline.summary->offset, segment.size()),
                        outline.summary->packed_size);
}

// A summary has all samples, is right, and is read as it was written.
void CheckSummary(Tables& tables) {
  if (!CheckTables(tables)) return;
  const auto summary = SummaryOf(tables);
  if (!summary) return;
  if (!CheckTables(*summary) || SumOfRows(*summary) != SumOfRows(tables)) {
    std::abort();
  }
  const auto segment = EncodeSummarized(tables, {.first = 1, .last = 1});
  if (!segment) return;
  const auto outline = ReadSegmentOutline(*segment);
  if (!outline || !outline->summary) std::abort();
  const auto read =
      DecodeSummary(*outline->summary, SummaryIn(*segment, *outline));
  if (!read || read->rows.size() != summary->rows.size()) std::abort();
}

void Check(Tables& tables) {
  CheckSums(tables);
  CheckFlame(tables);
  CheckFlames(tables);
  CheckSummary(tables);
  CheckMerge(tables);
  CheckThinning(tables);
  (void)FileFilter(tables, {.container = "nginx", .pod = "web-0"});
  RangeProfile range({.unit = "nginx", .function = "a"}, kMaxProfileBytes);
  if (!range.Add(tables)) return;
  const profd::Profile profile = std::move(range).Finish();
  uint64_t count = 0;
  for (const auto& sample : profile.samples) {
    if (sample.kind >= profile.metadata.kinds.size()) std::abort();
    count += sample.count;
  }
  if (count > profile.accounting.emitted) std::abort();
  // What was read can be written, and is the same then.
  const auto segment = EncodeSegment(tables, {.first = 1, .last = 1});
  if (!segment) return;
  const auto again = DecodeSegment(*segment);
  if (!again || again->tables.rows != tables.rows ||
      again->tables.nodes != tables.nodes ||
      again->tables.cgroup_names != tables.cgroup_names) {
    std::abort();
  }
}

// With a function, two kinds and a part.
Tables TablesOfFlames() {
  Tables tables;
  const auto text = [&](std::string_view words) {
    return tables.strings.Intern(words);
  };
  tables.functions = {
      {.name = text("main"), .kind = text("user"), .flags = Function::kInFile}};
  tables.kinds = {{.name = text("cpu"), .unit = text("nanoseconds")},
                  {.name = text("blocked"), .unit = text("nanoseconds")}};
  tables.settings = {{.kinds = 2}};
  tables.parts = {{.start_unix_ns = 1, .duration_ns = 1}};
  (void)text("taken");
  (void)text("emitted");
  return tables;
}

void CheckBytesOfFlames(std::string_view bytes) {
  const Tables tables = TablesOfFlames();
  const auto flames = DecodeFlames(bytes, tables);
  if (!flames) return;
  (void)ShowFlames(tables, *flames);
  const auto again = DecodeFlames(EncodeFlames(*flames), tables);
  if (!again || *again != *flames) std::abort();
}

void CheckColumns(std::string_view bytes) {
  ksym::ByteReader reader(std::as_bytes(std::span(bytes)));
  ColumnViews views;
  for (std::string_view& view : views) {
    view = reader.ReadString(reader.ReadUleb128());
  }
  Tables tables;
  if (!reader.ok() || !AppendColumns(views, tables)) {
    return CheckBytesOfFlames(bytes);
  }
  Check(tables);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto journal = DecodeJournal(bytes)) {
    Check(journal->tables);
  } else if (auto segment = DecodeSegment(bytes)) {
    Check(segment->tables);
    const auto flames = DecodeSegment(bytes, Content::kFlames);
    if (flames && flames->flames) ShowFlames(flames->tables, *flames->flames);
    const auto outline = ReadSegmentOutline(bytes);
    if (!outline || !outline->summary) return 0;
    auto summary = DecodeSummary(*outline->summary, SummaryIn(bytes, *outline));
    if (summary) Check(*summary);
  } else {
    CheckColumns(bytes);
  }
  return 0;
}
