// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/format_table.h"

#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/output/format.h"
#include "daemon/profile/kind_select.h"

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

void WriteCounts(const Profile& profile, const OutputOptions& options,
                 OutputBuffer& out) {
  const std::string_view mark = options.annotations ? "!" : "";
  for (const ProfileSample& sample : profile.samples) {
    out.Write(std::to_string(sample.count) + std::string(mark));
  }
}

// A format is one row and its writer: one of the test's own is found by name
// and extension, and written with options like any other, of one kind.
TEST(FormatTableTest, TakesAFormatOfItsOwn) {
  std::vector<FormatRow> rows(FormatRows().begin(), FormatRows().end());
  rows.push_back({.name = "count",
                  .extensions = {".count.json"},
                  .content_type = "text/plain",
                  .sentence = "how many samples stacks have",
                  .write = &WriteCounts});
  const FormatRow* row = FindFormat("count", rows);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(FindFormatOfPath("a.count.json", rows), row);
  Profile profile;
  profile.metadata.kinds = {EventKind("cpu-clock", 99, 0),
                            {.name = "blocked",
                             .unit = "nanoseconds",
                             .event = "sched_switch",
                             .has_values = true}};
  profile.samples = {{.count = 5}, {.kind = 1, .count = 2, .value = 900}};
  EXPECT_EQ(Render(profile, *row, {.annotations = true}), "5!");
  ASSERT_TRUE(ShowKind("blocked", profile));
  EXPECT_EQ(Render(profile, *row, {}), "900");
}

// The stack of a parked thread is one frame, is below that frame, or has a
// mark, as the format's row says; --parked leaves what a mark says to formats
// that write it.
TEST(FormatTableTest, ArrangesParkedThreads) {
  for (const FormatRow& row : FormatRows()) {
    for (const ParkedStacks stacks :
         {ParkedStacks::kFolded, ParkedStacks::kOpen}) {
      ProfileBuilder builder;
      const FrameId frame = builder.AddFrame({.name = builder.Intern("Wait")});
      builder.AddSample({.comm = builder.Intern("app"),
                         .user_state = StackState::kWhole,
                         .parked = true,
                         .user = builder.AddStack({&frame, 1}),
                         .count = 1});
      Profile profile = std::move(builder).Finish({});
      ArrangeParked(stacks, row, profile);
      const std::string text = Render(profile, row, {});
      const bool is_open = stacks == ParkedStacks::kOpen;
      const bool is_marked = profile.samples[0].parked;
      switch (row.parked) {
        case FormatParked::kOneFrame:
          EXPECT_EQ(text.contains("[parked]"), !is_open) << row.name;
          EXPECT_FALSE(is_marked) << row.name;
          break;
        case FormatParked::kBelow:
          EXPECT_TRUE(text.contains("\"Wait\"")) << row.name;
          EXPECT_EQ(text.contains("\"[parked]\""), !is_open) << row.name;
          break;
        case FormatParked::kMarked:
          EXPECT_TRUE(is_marked) << row.name;
          EXPECT_FALSE(text.contains("[parked]")) << row.name;
          break;
      }
    }
  }
}

std::string ReadDocument(const std::string& path) {
  std::ifstream in(KSYM_TEST_DATA_DIR "/../../" + path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_FALSE(text.empty()) << path;
  return text;
}

// Whether the text has the word, neither in front of nor behind a letter.
bool HasWord(const std::string& text, const std::string& word) {
  for (size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const auto is_part = [&](size_t place) {
      return place < text.size() && std::isalnum(text[place]) != 0;
    };
    if (!is_part(end) && (at == 0 || !is_part(at - 1))) return true;
  }
  return false;
}

// The manual page, docs/formats.md and the service's schema name what the rows
// have.
TEST(FormatTableTest, DocumentsNameEachRow) {
  const std::string page = ReadDocument("man/ksym-profile.8");
  const std::string formats = ReadDocument("docs/formats.md");
  for (const FormatRow& row : FormatRows()) {
    const std::string name(row.name);
    EXPECT_TRUE(HasWord(page, ".Cm " + name)) << name;
    EXPECT_TRUE(HasWord(formats, "`--format " + name + "`")) << name;
    for (const std::string_view extension : row.extensions) {
      if (extension.empty()) continue;
      EXPECT_TRUE(HasWord(page, std::string(extension))) << extension;
      EXPECT_TRUE(HasWord(formats, "`*" + std::string(extension) + "`"))
          << extension;
    }
  }
  const auto schema =
      nlohmann::json::parse(ReadDocument("docs/ksym-profiled.schema.json"));
  const auto& words = schema.at(
      nlohmann::json::json_pointer("/properties/files/properties/format/enum"));
  const auto files = FileFormats();
  EXPECT_EQ(words.get<std::vector<std::string>>(),
            std::vector<std::string>(files.begin(), files.end()));
}

// JSON's schema names each kind of frame that is written.
TEST(FormatTableTest, TheSchemaNamesFrameKinds) {
  const auto schema =
      nlohmann::json::parse(ReadDocument("docs/profile.schema.json"));
  const auto words =
      schema
          .at(nlohmann::json::json_pointer("/$defs/frame/properties/kind/enum"))
          .get<std::set<std::string>>();
  std::set<std::string> names;
  for (const FrameKind* kind : kFrameKinds) names.emplace(kind->name);
  EXPECT_EQ(words, names);
}

}  // namespace
}  // namespace profd
