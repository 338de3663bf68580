// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/history/columns.h"
#include "daemon/history/layout.h"
#include "daemon/history/part_adder.h"
#include "daemon/history/words.h"
#include "ksym/base/bounded_name.h"
#include "tests/daemon/history/sample_parts.h"

namespace profd::history {
namespace {

using namespace std::string_view_literals;

constexpr unsigned kRecords = 3;

// A journal with a record for each of some parts, and where each ends.
struct Journal {
  std::string bytes = JournalHeader(7);
  std::vector<size_t> ends = {bytes.size()};
  PartAdder adder;

  Journal() {
    Sizes written;
    for (unsigned i = 0; i < kRecords; ++i) {
      EXPECT_TRUE(adder.Add(PartNumber(i), {.boot = "b", .name = "r"}));
      bytes += EncodeRecord(adder.tables(), written).value();
      written = adder.tables().sizes();
      ends.push_back(bytes.size());
    }
  }

  // Records that end within so many bytes.
  size_t WholeWithin(size_t size) const {
    size_t whole = 0;
    while (whole < kRecords && ends[whole + 1] <= size) ++whole;
    return whole;
  }
};

// Whether both have the same parts and rows, the first ones of the longer.
bool IsBeginning(const Tables& beginning, const Tables& all) {
  const auto same = [](const auto& a, const auto& b) {
    return a.size() <= b.size() && std::equal(a.begin(), a.end(), b.begin());
  };
  bool texts = beginning.strings.size() <= all.strings.size();
  for (StringId id = 0; texts && id < beginning.strings.size(); ++id) {
    texts = beginning.strings.Get(id) == all.strings.Get(id);
  }
  return texts && same(beginning.functions, all.functions) &&
         same(beginning.nodes, all.nodes) &&
         same(beginning.series, all.series) && same(beginning.rows, all.rows);
}

TEST(HistoryJournal, HasWhatWasAdded) {
  const Journal journal;
  const auto read = DecodeJournal(journal.bytes);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->sequence, 7u);
  EXPECT_EQ(read->records, kRecords);
  EXPECT_EQ(read->bytes_after, 0u);
  EXPECT_TRUE(IsBeginning(read->tables, journal.adder.tables()));
  EXPECT_EQ(read->tables.rows.size(), 3 * kRecords);
  EXPECT_EQ(read->tables.parts.size(), kRecords);
}

// Each new interval costs what is new in it.
TEST(HistoryJournal, RepeatsNothing) {
  const Journal journal;
  const size_t first = journal.ends[1] - journal.ends[0];
  const size_t second = journal.ends[2] - journal.ends[1];
  EXPECT_LT(second, first);
}

TEST(HistoryJournal, CutAnywhereLosesTheLastRecordAtMost) {
  const Journal journal;
  for (size_t size = 0; size < journal.bytes.size(); ++size) {
    const auto read = DecodeJournal(journal.bytes.substr(0, size));
    ASSERT_TRUE(read) << size << ": " << read.error().message();
    EXPECT_EQ(read->records, journal.WholeWithin(size)) << size;
    EXPECT_EQ(read->good_bytes + read->bytes_after, size) << size;
    EXPECT_TRUE(IsBeginning(read->tables, journal.adder.tables())) << size;
    EXPECT_EQ(read->tables.parts.size(), read->records) << size;
  }
}

TEST(HistoryJournal, FlippedBitEndsItThere) {
  const Journal journal;
  for (size_t bit = 0; bit < journal.bytes.size() * 8; ++bit) {
    std::string bytes = journal.bytes;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const auto read = DecodeJournal(bytes);
    if (bit / 8 < kJournalHeaderBytes) {
      EXPECT_FALSE(read) << bit;
      continue;
    }
    ASSERT_TRUE(read) << bit;
    EXPECT_EQ(read->records, journal.WholeWithin(bit / 8)) << bit;
    EXPECT_GT(read->bytes_after, 0u) << bit;
    EXPECT_TRUE(IsBeginning(read->tables, journal.adder.tables())) << bit;
  }
}

// A forged journal has millions of them in little room.
TEST(HistoryJournal, EndsAtARecordWithoutAPart) {
  const Journal journal;
  PartAdder none;
  const std::string bytes = journal.bytes.substr(0, journal.ends[1]) +
                            EncodeRecord(none.tables(), Sizes()).value() +
                            journal.bytes.substr(journal.ends[1]);
  const auto read = DecodeJournal(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->records, 1u);
  EXPECT_EQ(read->bytes_after, bytes.size() - journal.ends[1]);
}

TEST(HistoryJournal, EndsWhereCountsAreTooLarge) {
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  std::string bytes = JournalHeader(7);
  PartAdder adder;
  Sizes written;
  for (unsigned i = 0; i < kRecords; ++i) {
    ASSERT_TRUE(adder.Add(PartNumber(i), {}));
    adder.tables().rows.back().count = kHalf;
    bytes += EncodeRecord(adder.tables(), written).value();
    written = adder.tables().sizes();
  }
  const auto read = DecodeJournal(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->records, 1u);
  EXPECT_EQ(read->tables.parts.size(), 1u);
}

TEST(HistorySegment, RefusesLongTexts) {
  for (const size_t more : {0, 1}) {
    Tables tables = TablesOf({PartNumber(0)});
    tables.strings.Intern(std::string(ksym::kMaxShownBytes + more, 'x'));
    const auto read = DecodeSegment(EncodeSegment(tables, {9, 12}).value());
    EXPECT_EQ(read.has_value(), more == 0);
  }
}

TEST(HistorySegment, HasWhatWasAdded) {
  Journal journal;
  const std::string bytes =
      EncodeSegment(journal.adder.tables(), {9, 12}).value();
  const auto read = DecodeSegment(bytes);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->sequences, (Sequences{9, 12}));
  EXPECT_TRUE(IsBeginning(read->tables, journal.adder.tables()));
  EXPECT_EQ(read->tables.rows.size(), journal.adder.tables().rows.size());
}

TEST(HistorySegment, IsReadWithoutStacks) {
  Journal journal;
  const std::string bytes =
      EncodeSegment(journal.adder.tables(), {9, 12}).value();
  const Tables whole = DecodeSegment(bytes).value().tables;
  const auto read = DecodeSegment(bytes, Content::kNoStacks);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_TRUE(read->tables.functions.empty());
  EXPECT_EQ(read->tables.nodes.size(), 1u);
  EXPECT_EQ(read->tables.series, whole.series);
  std::vector<Row> rows = whole.rows;
  for (Row& row : rows) row.user = row.kernel = 0;
  EXPECT_EQ(read->tables.rows, rows);
  EXPECT_EQ(read->tables.parts.size(), whole.parts.size());
  EXPECT_EQ(read->tables.text_bytes, whole.text_bytes);
}

TEST(HistorySegment, IsReadIntoTheRoomOfAnother) {
  Tables first = TablesOf({PartNumber(0), PartNumber(1), PartNumber(2)});
  Tables second = TablesOf({PartNumber(3)});
  const std::string bytes = EncodeSegment(second, {9, 12}).value();
  const auto read = DecodeSegment(bytes, Content::kAll, std::move(first));
  ASSERT_TRUE(read);
  const auto alone = DecodeSegment(bytes);
  ASSERT_TRUE(alone);
  EXPECT_EQ(read->tables.sizes(), alone->tables.sizes());
  EXPECT_TRUE(IsBeginning(read->tables, alone->tables));
}

TEST(HistorySegment, CutOrFlippedAnywhereIsRefused) {
  Journal journal;
  const std::string bytes =
      EncodeSegment(journal.adder.tables(), {9, 12}).value();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeSegment(bytes.substr(0, size))) << size;
  }
  EXPECT_FALSE(DecodeSegment(bytes + '\0'));
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(DecodeSegment(flipped)) << bit;
  }
}

// A table of parts that have nothing but times.
Tables PartsOf(const std::vector<Part>& parts) {
  Tables tables;
  tables.kinds.emplace_back();
  tables.settings.push_back({.kinds = 1});
  tables.parts = parts;
  return tables;
}

TEST(HistoryColumns, HaveNumbersOfAllLengths) {
  std::vector<uint64_t> numbers;
  for (unsigned bits = 0; bits < 64; ++bits) {
    const uint64_t top = uint64_t{1} << bits;
    numbers.insert(numbers.end(), {top - 1, top, top + 1});
  }
  numbers.insert(numbers.end(), {~uint64_t{0}, 0, 127, 128, 1});
  // The last ones are read where the column ends.
  while (!numbers.empty()) {
    std::vector<Part> parts;
    for (const uint64_t number : numbers) {
      // Steps of both signs, and their double.
      parts.push_back({.start_unix_ns = number, .duration_ns = number});
      parts.push_back({.start_unix_ns = ~number + 1, .duration_ns = number});
    }
    Tables tables = PartsOf(parts);
    const Columns columns = EncodeColumns(tables, {});
    ColumnViews views;
    std::ranges::copy(columns, views.begin());
    Tables read;
    ASSERT_TRUE(AppendColumns(views, read)) << numbers.size();
    ASSERT_EQ(read.parts.size(), parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(read.parts[i].start_unix_ns, parts[i].start_unix_ns) << i;
      EXPECT_EQ(read.parts[i].duration_ns, parts[i].duration_ns) << i;
    }
    numbers.pop_back();
  }
}

// The length of one part, from a column of those bytes; nothing: it is refused.
std::optional<uint64_t> LengthOf(std::string_view column) {
  constexpr size_t kLengthColumn = 32;
  Tables tables = PartsOf({{.start_unix_ns = 1, .duration_ns = 2}});
  Columns columns = EncodeColumns(tables, {});
  EXPECT_EQ(columns[kLengthColumn], "\2");
  ColumnViews views;
  std::ranges::copy(columns, views.begin());
  views[kLengthColumn] = column;
  Tables read;
  if (!AppendColumns(views, read)) return std::nullopt;
  return read.parts.at(0).duration_ns;
}

TEST(HistoryColumns, RefuseNumbersWithoutAnEnd) {
  const std::string nine(9, '\xff');
  EXPECT_EQ(LengthOf("\x85\x80\x80\x00"sv), 5u);
  EXPECT_EQ(LengthOf("\x85\x80\x80\x80\x00"sv), 5u);
  EXPECT_EQ(LengthOf(nine + "\1"), ~uint64_t{0});
  EXPECT_EQ(LengthOf(nine + "\2"), std::nullopt);
  EXPECT_EQ(LengthOf(nine + "\xff\1"), std::nullopt);
  EXPECT_EQ(LengthOf(""), std::nullopt);
  EXPECT_EQ(LengthOf("\x85"), std::nullopt);
  // A column that ends after the first byte of another number is damaged, too.
  EXPECT_EQ(LengthOf("\5\x80"), std::nullopt);
  EXPECT_EQ(LengthOf("\5\x80\x80\x80\x80"), std::nullopt);
  EXPECT_EQ(LengthOf("\5\6"), std::nullopt);
}

TEST(HistoryWords, TellAllFrameKindsApart) {
  for (const FrameKind* kind : kFrameKinds) {
    const std::string_view module = kind == &kBpfFrame ? "[bpf]"
                                    : kind == &kTrampolineFrame
                                        ? "[__builtin__x]"
                                        : "";
    EXPECT_EQ(FindKindOfFunction(kind->name, FlagsOf(*kind), module), kind)
        << kind->name;
  }
  EXPECT_EQ(FindKindOfFunction("no such kind", 0, ""), nullptr);
}

TEST(HistoryWords, HaveAllNumbers) {
  Accounting accounting = {.taken = 1, .emitted = 2};
  accounting.lost_by_cause.fill(3);
  accounting.damaged_by_cause.fill(4);
  accounting.user_stack_ends.fill(5);
  accounting.helped_by_frame_pointers = 6;
  accounting.processes = {7, 8, 9};
  accounting.time_enabled_ns = 10;
  accounting.time_running_ns = 11;
  Accounting copy;
  for (const auto& [name, value] : CountersOf(accounting)) {
    const auto number = FindCounter(name);
    ASSERT_TRUE(number) << name;
    *CountersIn(copy)[*number] = value;
  }
  EXPECT_EQ(copy, accounting);
  EXPECT_FALSE(FindCounter("lost"));
}

TEST(HistoryFileName, IsReadAsItIsWritten) {
  for (const std::string text :
       {"000000000012.journal", "000000000012-000000000012-17-99.segment",
        "000000000012-000000000019-17-99.segment"}) {
    const auto name = ParseFileName(text);
    ASSERT_TRUE(name) << text;
    EXPECT_EQ(name->sequences.first, 12u);
    EXPECT_EQ(name->sequences.last, text.contains("19-") ? 19u : 12u);
    EXPECT_EQ(TextOf(*name), text);
  }
  for (const char* text :
       {"", "12.journal", "lock", "000000000012.segment",
        "000000000012-1-2.segment", "000000000012-000000000011-1-2.segment",
        "000000000012-000000000012-1-2.segment.bad",
        "000000000012-000000000012-+1-2.segment",
        "000000000012-000000000012-01-2.segment",
        "99999999999999999999999.journal"}) {
    EXPECT_FALSE(ParseFileName(text)) << text;
  }
}

TEST(PartAdder, CutsNamesAndKeepsThemApart) {
  ProfileBuilder builder;
  const std::string long_name(60'000, 'x');
  for (const char* end : {"a", "b"}) {
    const FrameId frame =
        builder.AddFrame({.name = builder.Intern(long_name + end)});
    builder.AddSample({.user_state = StackState::kWhole,
                       .user = builder.AddStack(std::vector{frame}),
                       .count = 1});
  }
  PartAdder adder;
  ASSERT_TRUE(adder.Add(std::move(builder).Finish({}), {}));
  EXPECT_EQ(adder.tables().functions.size(), 2u);
  EXPECT_LT(adder.tables().text_bytes, 4096u);
}

TEST(PartAdder, RefusesWhatNoFileTakes) {
  ProfileBuilder builder(ProfileBuilder::Parts::kOne);
  for (size_t i = 0; i < (size_t{1} << 18) + 1; ++i) {
    builder.AddSample({.pid = static_cast<uint32_t>(i), .count = 1});
  }
  PartAdder adder;
  EXPECT_FALSE(adder.Add(std::move(builder).Finish({}), {}));
  EXPECT_TRUE(adder.empty());
  EXPECT_TRUE(adder.tables().rows.empty());
}

}  // namespace
}  // namespace profd::history
