// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/format_table.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/output/format.h"

namespace profd {
namespace {

// Each format has one row, a name and extensions of its own.
TEST(FormatTableTest, RowsAreWhole) {
  std::set<OutputFormat> formats;
  std::set<std::string_view> words;
  for (const FormatRow& row : FormatRows()) {
    EXPECT_TRUE(formats.insert(row.format).second) << row.name;
    EXPECT_TRUE(words.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.content_type.empty()) << row.name;
    EXPECT_FALSE(row.sentence.empty()) << row.name;
    EXPECT_NE(row.write, nullptr) << row.name;
    EXPECT_EQ(&RowOf(row.format), &row);
    EXPECT_EQ(FindFormat(row.name), &row);
    EXPECT_FALSE(row.extensions[0].empty()) << row.name;
    for (const std::string_view extension : row.extensions) {
      if (extension.empty()) continue;
      EXPECT_TRUE(words.insert(extension).second) << extension;
      EXPECT_EQ(FindFormatOfPath("a/b" + std::string(extension)), &row);
    }
  }
}

// Where one extension ends like another one the longer one counts, and a name
// without any is no format's.
TEST(FormatTableTest, TheLongestExtensionCounts) {
  EXPECT_EQ(FormatOfExtension("a.json"), OutputFormat::kJson);
  EXPECT_EQ(FormatOfExtension("a.speedscope.json"), OutputFormat::kSpeedscope);
  EXPECT_EQ(FormatOfExtension("a.gz"), std::nullopt);
  EXPECT_EQ(FormatOfExtension(""), std::nullopt);
}

void WriteSampleCount(const Profile& profile, const OutputOptions& /*options*/,
                      OutputBuffer& out) {
  out.Write(std::to_string(profile.samples.size()));
}

// A format is one row and its writer: one of the test's own is found by name
// and extension, and writes.
TEST(FormatTableTest, TakesAFormatOfItsOwn) {
  std::vector<FormatRow> rows(FormatRows().begin(), FormatRows().end());
  rows.push_back({.name = "count",
                  .extensions = {".count.json"},
                  .content_type = "text/plain",
                  .sentence = "how many samples differ",
                  .write = &WriteSampleCount});
  const FormatRow* row = FindFormat("count", rows);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(FindFormatOfPath("a.count.json", rows), row);
  std::string text;
  OutputBuffer out([&](std::string_view piece) {
    text += piece;
    return ksym::Status();
  });
  row->write(Profile(), {}, out);
  ASSERT_TRUE(out.Finish());
  EXPECT_EQ(text, "0");
}

}  // namespace
}  // namespace profd
