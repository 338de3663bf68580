// SPDX-License-Identifier: Apache-2.0
#include "ksym/gsym/gsym_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "ksym/gsym/gsym_decode.h"
#include "ksym/gsym/gsym_line_table.h"
#include "ksym/gsym/gsym_lookup.h"
#include "tests/ksym/gsym/gsym_samples.h"

namespace ksym {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

FunctionBatch OneFunction(std::string_view name, uint64_t start,
                          uint64_t size) {
  FunctionBatch batch;
  batch.functions = {{name, {start, start + size}, 0, 0, 0, 0}};
  return batch;
}

// A decoder gives back what was written.
TEST(GsymWriter, RoundTrip) {
  const FunctionBatch batch = SampleBatch();
  for (const auto version : {GsymVersion::k1, GsymVersion::k2}) {
    const auto bytes = WriteGsym(batch, {.version = version});
    const auto file = GsymFile::Parse(bytes);
    ASSERT_TRUE(file);
    const auto function = DecodeGsymFunction(*file, 0);
    ASSERT_TRUE(function) << function.error().message();
    EXPECT_EQ(function->name, "main");
    EXPECT_EQ(function->size, 0x50u);
    ASSERT_EQ(function->lines.size(), 7u);
    for (size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(function->lines[i].address, batch.lines[i].address);
      EXPECT_EQ(function->lines[i].line, batch.lines[i].line);
    }
    ASSERT_EQ(function->inlines.size(), 2u);
    EXPECT_EQ(function->inlines[0].name, "twice");
    EXPECT_EQ(function->inlines[0].range_count, 2u);
    EXPECT_EQ(function->inlines[1].depth, 2u);
    EXPECT_EQ(function->inlines[1].call_line, 4u);
    EXPECT_EQ(function->ranges[function->inlines[1].first_range],
              (AddressRange{0x1014, 0x1018}));
  }
}

// The same functions give the same bytes.
TEST(GsymWriter, Deterministic) {
  EXPECT_EQ(WriteGsym(SampleBatch()), WriteGsym(SampleBatch()));
}

// Any rows come back from the line program: small steps, huge ones, backward
// lines, several at the same file.
TEST(GsymWriter, AnyLines) {
  std::mt19937 generator(7);
  const auto random = [&] { return static_cast<uint32_t>(generator()); };
  for (int round = 0; round < 300; ++round) {
    std::vector<LineRow> rows;
    uint64_t address = 0x1000;
    uint32_t line = random() % 1000;
    const unsigned line_bits = 1 + random() % 31;
    const unsigned address_bits = 1 + random() % 20;
    for (size_t i = 0; i < 1 + random() % 50; ++i) {
      rows.push_back({address, 1 + random() % 3, line});
      address += 1 + random() % (1u << address_bits);
      line += random() % (1u << line_bits) - (1u << (line_bits - 1));
    }
    ByteWriter out;
    GsymLineEncoder().Encode(0x1000, rows, out);
    std::vector<LineRow> decoded;
    EXPECT_TRUE(RunGsymLineTable(ByteCursor(out.bytes()), 0x1000,
                                 [&](const LineRow& row) {
                                   decoded.push_back(row);
                                   return true;
                                 }));
    EXPECT_EQ(decoded, rows);
  }
}

// Steps of a few lines and bytes are one byte each.
TEST(GsymWriter, SmallStepsAreOneByte) {
  std::vector<LineRow> rows(100, {0, 1, 40});
  for (uint32_t i = 0; i < 100; ++i) {
    rows[i].address = uint64_t{i} * 5;
    rows[i].line += i % 3;
  }
  ByteWriter out;
  GsymLineEncoder().Encode(0, rows, out);
  EXPECT_LE(out.size(), rows.size() + 5);
}

// Strings and files are stored once, whatever batch they come in.
TEST(GsymWriter, Deduplicates) {
  GsymWriter writer;
  for (uint64_t i = 0; i < 3; ++i) {
    FunctionBatch batch = OneFunction("same_name", 0x1000 * (i + 1), 16);
    batch.files = {{}, {"/a", "unused.c"}, {"/a", "b.c"}};
    batch.lines = {{0x1000 * (i + 1), 2, 1}};
    batch.functions[0].line_count = 1;
    writer.Add(batch);
  }
  const auto bytes = std::move(writer).Finish("");
  ASSERT_TRUE(bytes);
  const auto file = GsymFile::Parse(*bytes);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->file_count(), 2u);
  EXPECT_EQ(file->strings().size(), sizeof("\0/a\0b.c\0same_name"));
}

// The first with lines is kept of functions with the same code; the others are
// counted, or on demand kept as merged functions.
TEST(GsymWriter, SameCode) {
  const auto write = [](GsymWriterOptions::Merge merge) {
    GsymWriter writer({.merge = merge});
    writer.Add(OneFunction("alias", 0x1000, 0x50));
    writer.Add(SampleBatch());
    writer.Add(OneFunction("alias", 0x1000, 0x50));
    return std::move(writer).Finish("").value_or(std::vector<std::byte>());
  };
  const auto dropped = write(GsymWriterOptions::Merge::kDrop);
  EXPECT_EQ(LookupText(dropped, 0x1000), "main+0 /src/main.c:10");
  const auto kept = write(GsymWriterOptions::Merge::kKeep);
  EXPECT_EQ(LookupText(kept, 0x1000), "main+0 /src/main.c:10");
  const auto file = GsymFile::Parse(kept);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->function_count(), 2u);
  const auto function = DecodeGsymFunction(*file, 0);
  ASSERT_TRUE(function) << function.error().message();
  ASSERT_EQ(function->merged.size(), 1u);
  EXPECT_EQ(function->merged[0].name, "alias");
  GsymAnswer answer;
  ASSERT_TRUE(LookupGsym(*file, {0x1000}, answer));
  EXPECT_EQ(answer.merged_functions, 1u);
}

// A return address has the patterns of what its call may call, others none.
TEST(GsymWriter, CallSites) {
  for (const auto version : {GsymVersion::k1, GsymVersion::k2}) {
    GsymWriter writer({.version = version});
    const std::vector<GsymCallSite> sites = {{0x14, 1, {"^f$", "^g$"}},
                                             {0x18, 2, {}}};
    writer.Add(SampleBatch(), sites);
    const auto bytes = std::move(writer).Finish("");
    ASSERT_TRUE(bytes);
    const auto file = GsymFile::Parse(*bytes);
    ASSERT_TRUE(file);
    GsymAnswer answer;
    ASSERT_TRUE(LookupGsym(*file, {0x1014}, answer));
    EXPECT_THAT(answer.call_patterns, ElementsAre("^f$", "^g$"));
    ASSERT_TRUE(LookupGsym(*file, {0x1013}, answer));
    EXPECT_THAT(answer.call_patterns, ElementsAre());
    const auto function = DecodeGsymFunction(*file, 0);
    ASSERT_TRUE(function);
    EXPECT_EQ(function->call_sites[1].flags, 2);
  }
}

// A row without a file says that nothing is known there; what was inlined is.
TEST(GsymWriter, RowsWithoutFile) {
  FunctionBatch batch = SampleBatch();
  batch.lines[2].file = 0;
  batch.lines[2].line = 0;
  const auto bytes = WriteGsym(batch);
  EXPECT_EQ(LookupText(bytes, 0x1014),
            "once+0; twice+4 /src/include/util.h:4; main+20 /src/main.c:11");
}

// Functions that start together are told apart by their ends.
TEST(GsymWriter, SameStart) {
  GsymWriter writer;
  writer.Add(OneFunction("long", 0x1000, 0x20));
  writer.Add(OneFunction("short", 0x1000, 0x10));
  const auto bytes = std::move(writer).Finish("");
  ASSERT_TRUE(bytes);
  EXPECT_EQ(LookupText(*bytes, 0x100f), "short+15");
  EXPECT_EQ(LookupText(*bytes, 0x1010), "long+16");
  EXPECT_EQ(LookupText(*bytes, 0x1020), "none");
}

// What has no place in the format is left out and counted.
TEST(GsymWriter, Losses) {
  GsymWriter writer;
  FunctionBatch batch = SampleBatch();
  batch.lines[1].address = 0x0fff;     // before the function
  batch.lines[3].address = 0x1010;     // back
  batch.ranges[2] = {0x1000, 0x1004};  // before its parent
  batch.functions.push_back({"empty", {5, 5}, 0, 0, 0, 0});
  writer.Add(batch);
  EXPECT_EQ(writer.losses().rows, 2u);
  EXPECT_EQ(writer.losses().inlined_calls, 1u);
  EXPECT_EQ(writer.losses().empty_functions, 1u);
}

// What is asked for and cannot be is refused.
TEST(GsymWriter, Refusals) {
  const auto error = [](const GsymWriterOptions& options,
                        std::string_view uuid) {
    GsymWriter writer(options);
    writer.Add(SampleBatch());
    const auto bytes = std::move(writer).Finish(uuid);
    return bytes ? std::string() : bytes.error().message();
  };
  EXPECT_THAT(error({.address_bytes = 1}, ""), HasSubstr("need 2 bytes"));
  EXPECT_THAT(error({.address_bytes = 3}, ""), HasSubstr("need 2 bytes"));
  EXPECT_THAT(error({}, std::string(21, 'u')), HasSubstr("at most 20"));
  EXPECT_EQ(error({}, std::string(20, 'u')), "");
}

// A file without functions is a file.
TEST(GsymWriter, NoFunctions) {
  for (const auto version : {GsymVersion::k1, GsymVersion::k2}) {
    const auto bytes = WriteGsym({}, {.version = version});
    EXPECT_EQ(LookupText(bytes, 0x1000), "none");
  }
}

}  // namespace
}  // namespace ksym
