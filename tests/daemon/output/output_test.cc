// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "daemon/output/format.h"
#include "daemon/output/summary.h"
#include "daemon/output/text.h"
#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

std::string RenderFolded(const Profile& profile, const OutputOptions& options) {
  return Render(profile, OutputFormat::kFolded, options);
}
std::string RenderText(const Profile& profile, const OutputOptions& options) {
  return Render(profile, OutputFormat::kText, options);
}
std::string RenderJson(const Profile& profile, const OutputOptions& options) {
  return Render(profile, OutputFormat::kJson, options);
}

using By = OutputOptions::By;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Different processes, and different addresses of one function, are one line.
TEST(FoldedTest, MergesEqualNamedStacks) {
  TestProfile p;
  p.Add({.pid = 1, .user = {p.User("f", "/bin/a")}, .count = 2});
  p.Add({.pid = 2, .user = {p.User("f", "/bin/b")}, .count = 3});
  const Profile profile = std::move(p).Finish();
  EXPECT_EQ(RenderFolded(profile, {}), "app;f 5\n");
  EXPECT_EQ(RenderFolded(profile, {.by = By::kPid}), "app-1;f 2\napp-2;f 3\n");
}

// Lines are in the order of LC_ALL=C sort, also where one stack is the start
// of another or a name starts with characters below the separator.
TEST(FoldedTest, SortsWholeLines) {
  TestProfile p;
  const std::vector<std::string_view> names = {
      "a", "a !x", "a 9x", "a!", "a;b", "B", "\xc3\xa9", "a\x1b"};
  for (const std::string_view name : names) {
    p.Add({.user = {p.User(name)}, .count = 10});
    p.Add({.user = {p.User("leaf"), p.User(name)}, .count = 9});
  }
  const auto lines = Lines(RenderFolded(std::move(p).Finish(), {}));
  EXPECT_EQ(lines.size(), 2 * names.size());
  EXPECT_TRUE(std::ranges::is_sorted(lines));
}

// Whatever the names are, a consumer that splits at the last space and at
// semicolons gets the frames and the counts that went in.
TEST(FoldedTest, HostileNamesKeepTheStructure) {
  std::mt19937 random(1);
  const std::string_view alphabet(
      "a;\n\r\0 \x1b\xff\xc3\xa9"
      "0.9-_[k]\"\\",
      20);
  const auto name = [&] {
    std::string text(random() % 6, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    TestProfile p;
    std::vector<FrameId> frames(random() % 4 + 1);
    for (FrameId& frame : frames) frame = p.User(name());
    p.Add({.comm = name(), .user = frames, .count = 42});
    const std::string out = RenderFolded(std::move(p).Finish(), {});
    ASSERT_EQ(std::ranges::count(out, '\n'), 1) << out;
    ASSERT_TRUE(out.ends_with(" 42\n")) << out;
    EXPECT_EQ(static_cast<size_t>(std::ranges::count(out, ';')), frames.size());
    const std::string stack = out.substr(0, out.size() - 4);
    EXPECT_FALSE(stack.ends_with(' ')) << out;
    const size_t space = stack.rfind(' ');
    EXPECT_FALSE(space != std::string::npos &&
                 stack.find_first_not_of("0123456789.", space + 1) ==
                     std::string::npos)
        << out;
  }
}

// The delimiter stands only between two stacks that are there.
TEST(FoldedTest, DelimitsBothStacks) {
  TestProfile p;
  p.Add({.user = {p.User("u")}, .kernel = {p.Kernel("k")}});
  p.Add({.comm = "u", .user = {p.User("u")}});
  p.Add({.comm = "k", .kernel = {p.Kernel("k")}});
  p.Add({.comm = "m",
         .kernel = {p.Kernel("k")},
         .user_state = StackState::kFaulted});
  EXPECT_EQ(RenderFolded(std::move(p).Finish(),
                         {.annotations = true, .delimiter = true}),
            "app;u;-;k_[k] 1\nk;k_[k] 1\nm;[Missed User Stack];k_[k] 1\n"
            "u;u 1\n");
}

// An empty profile is an empty file, and a valid document in JSON.
TEST(OutputTest, EmptyProfile) {
  const Profile profile = TestProfile().Finish();
  EXPECT_EQ(RenderFolded(profile, {}), "");
  EXPECT_EQ(RenderText(profile, {}), "");
  const auto document = nlohmann::json::parse(RenderJson(profile, {}));
  EXPECT_TRUE(document["stacks"].empty());
  EXPECT_TRUE(document["frames"].empty());
}

// bcc's layout for one sample, to the letter.
TEST(TextTest, Layout) {
  TestProfile p;
  p.Add(
      {.comm = "spin",
       .pid = 1234,
       .tid = 1235,
       .user = {p.User("f", "/usr/bin/spin"), p.User("main", "/usr/bin/spin")},
       .kernel = {p.Kernel("vfs_read")},
       .count = 99});
  const Profile profile = std::move(p).Finish();
  EXPECT_EQ(RenderText(profile, {.delimiter = true}),
            "    vfs_read+0x20 [kernel]\n"
            "    --\n"
            "    f+0x10 [spin]\n"
            "    main+0x10 [spin]\n"
            "    -                spin (1234)\n"
            "        99\n\n");
  EXPECT_THAT(RenderText(profile, {.by = By::kTid}),
              HasSubstr("spin (1235)\n"));
  EXPECT_THAT(RenderText(profile, {.addresses = true}),
              HasSubstr("    0xffffffff81000008 vfs_read+0x20 [kernel]\n"
                        "    0x000055d0c0de0001 f+0x10 [spin]\n"));
}

// The rarest comes first; equal counts are in the order of their text.
TEST(TextTest, SortsByCountThenText) {
  TestProfile p;
  p.Add({.comm = "c", .count = 2});
  p.Add({.comm = "b", .count = 1});
  p.Add({.comm = "a", .count = 2});
  const std::string out = RenderText(std::move(p).Finish(), {});
  EXPECT_LT(out.find(" b ("), out.find(" a ("));
  EXPECT_LT(out.find(" a ("), out.find(" c ("));
}

// A name of spaces and digits cannot be taken for the line of a count.
TEST(TextTest, HostileNames) {
  TestProfile p;
  p.Add({.comm = "a\nb",
         .user = {p.User("    5", "", ksym::Unresolved::kAnonymous)}});
  const std::string out = RenderText(std::move(p).Finish(), {});
  EXPECT_THAT(out, HasSubstr("    ____5\n"));
  EXPECT_THAT(out, HasSubstr(" a?b (7)\n"));
}

// Every wording of bcc's first line.
TEST(TextTest, Header) {
  EXPECT_EQ(TextHeader({.frequency_hz = 99,
                        .pids = {},
                        .tids = {},
                        .cpus = {},
                        .duration_seconds = 10}),
            "Sampling at 99 Hertz of all threads by user + kernel stack for "
            "10 secs.\n");
  EXPECT_EQ(TextHeader({.count_period = 1000,
                        .pids = {1, 2},
                        .tids = {},
                        .stacks = TextHeaderOptions::Stacks::kUser,
                        .cpus = "3",
                        .duration_seconds = {}}),
            "Sampling at every 1000 events of PID [1, 2] by user stack on "
            "CPU#3... Hit Ctrl-C to end.\n");
  EXPECT_EQ(TextHeader({.frequency_hz = 49,
                        .pids = {},
                        .tids = {5},
                        .stacks = TextHeaderOptions::Stacks::kKernel,
                        .cpus = {},
                        .duration_seconds = 0.25}),
            "Sampling at 49 Hertz of TID [5] by kernel stack for 0.25 secs.\n");
}

// The document parses and says what the profile holds; frames are referred to
// by index, root first.
TEST(JsonTest, Document) {
  const auto document =
      nlohmann::json::parse(RenderJson(ExampleProfile(1), {}));
  const auto& samples = document["metadata"]["samples"];
  EXPECT_EQ(samples["taken"], 120);
  EXPECT_EQ(samples["emitted"], 112);
  EXPECT_EQ(samples["lost"]["counts-full"], 5);
  EXPECT_EQ(samples["damaged"]["truncated"], 4);
  EXPECT_EQ(document["metadata"]["event"], "cpu-clock");
  const auto& table = document["metadata"]["kernel_table"];
  EXPECT_EQ(table["snapshots"], 2);
  EXPECT_EQ(table["changes"], 7);
  EXPECT_EQ(table["symbols"], 122153);
  EXPECT_EQ(table["bytes"], 572000);
  EXPECT_EQ(table["reading_ns"], 90000000);
  EXPECT_EQ(document["metadata"]["unwind_tables"],
            nlohmann::json({{"processes", 3},
                            {"files", 11},
                            {"bytes", 217384},
                            {"building_ns", 4300000},
                            {"median_delay_ns", 33000000},
                            {"longest_delay_ns", 147000000},
                            {"stacks_copied", 14}}));
  uint64_t total = 0;
  for (const auto& stack : document["stacks"]) {
    total += stack["count"].get<uint64_t>();
    EXPECT_FALSE(stack.contains("tid"));
    if (stack["count"] != 90) continue;
    const auto& frames = document["frames"];
    EXPECT_EQ(frames[stack["user"][0].get<size_t>()]["name"], "main");
    EXPECT_EQ(frames[stack["user"][1].get<size_t>()]["name"], "spin");
    EXPECT_EQ(stack["user_state"], "whole");
    EXPECT_EQ(stack["kernel_state"], "none");
  }
  EXPECT_EQ(total, 112u);
}

// Addresses are there only when asked; without them frames that differ in
// nothing else are one, and so are the stacks made of them.
TEST(JsonTest, AddressesOnlyWhenAsked) {
  TestProfile p;
  Frame frame = {.name = p.builder().Intern("[unknown]"),
                 .reason = ksym::Unresolved::kAnonymous};
  for (const uint64_t address : {0x1000, 0x2000}) {
    frame.address = address;
    p.Add({.user = {p.builder().AddFrame(frame)}});
  }
  const Profile profile = std::move(p).Finish();
  auto document = nlohmann::json::parse(RenderJson(profile, {}));
  EXPECT_EQ(document["frames"].size(), 1u);
  ASSERT_EQ(document["stacks"].size(), 1u);
  EXPECT_EQ(document["stacks"][0]["count"], 2);
  document = nlohmann::json::parse(RenderJson(profile, {.addresses = true}));
  EXPECT_EQ(document["frames"].size(), 2u);
  EXPECT_EQ(document["frames"][0]["address"], "0x1000");
  EXPECT_EQ(document["stacks"].size(), 2u);
}

// Any bytes in any text give a document that parses.
TEST(JsonTest, HostileTexts) {
  std::string all;
  for (int i = 255; i >= 0; --i) all += static_cast<char>(i);
  TestProfile p;
  p.Add({.comm = all, .user = {p.User(all, all)}, .kernel = {p.Kernel(all)}});
  Profile profile = std::move(p).Finish();
  profile.metadata.hostname = all;
  profile.metadata.warnings = {all, all};
  const auto document =
      nlohmann::json::parse(RenderJson(profile, {}), nullptr, false);
  ASSERT_FALSE(document.is_discarded());
  EXPECT_EQ(document["stacks"].size(), 1u);
}

// Samples that differ in their mark alone are two stacks.
TEST(JsonTest, MarksParkedStacks) {
  TestProfile p;
  for (int i = 0; i < 2; ++i) p.Add({.pid = 1, .user = {p.User("f")}});
  p.Add({.pid = 2, .user = {p.User("f")}});
  Profile profile = std::move(p).Finish();
  ASSERT_EQ(profile.samples.size(), 2u);
  profile.samples.push_back(profile.samples[0]);
  profile.samples[0].parked = true;
  profile.samples[0].count = 7;
  const auto document = nlohmann::json::parse(RenderJson(profile, {}));
  std::vector<std::pair<int, bool>> stacks;
  for (const auto& stack : document["stacks"]) {
    stacks.emplace_back(stack["count"], stack.value("parked", false));
  }
  EXPECT_THAT(stacks, testing::UnorderedElementsAre(testing::Pair(7, true),
                                                    testing::Pair(2, false),
                                                    testing::Pair(1, false)));
}

// For waits the document has the kernel's own sums, for all threads and for
// each, in order, and counts those that are not listed.
TEST(JsonTest, HasSumsOfThreads) {
  Profile profile = ExampleProfile(1);
  EXPECT_FALSE(
      nlohmann::json::parse(RenderJson(profile, {})).contains("threads"));
  profile.thread_sums = {
      .sum = {100, 20, 300},
      .count = 5,
      .threads = {{2, 3, "b\"", {1, 2, 3}}, {1, 9, "a", {4, 5, 6}}}};
  const auto document = nlohmann::json::parse(RenderJson(profile, {}));
  EXPECT_EQ(document["metadata"]["thread_times"],
            nlohmann::json({{"threads", 5},
                            {"not_listed", 3},
                            {"running_ns", 100},
                            {"runnable_ns", 20},
                            {"blocked_ns", 300}}));
  ASSERT_EQ(document["threads"].size(), 2u);
  EXPECT_EQ(document["threads"][0], nlohmann::json({{"pid", 1},
                                                    {"tid", 9},
                                                    {"comm", "a"},
                                                    {"running_ns", 4},
                                                    {"runnable_ns", 5},
                                                    {"blocked_ns", 6}}));
  EXPECT_EQ(document["threads"][1]["comm"], "b\"");
}

// All is well: one short line. Losses are told by cause and with their cure.
TEST(SummaryTest, TellsLosses) {
  TestProfile well;
  well.builder().Add(Accounting{.taken = 10, .emitted = 10});
  EXPECT_EQ(SummaryLine(std::move(well).Finish()),
            "10 samples taken, 10 emitted, 0 lost");
  const std::string summary = SummaryLine(ExampleProfile(1));
  EXPECT_THAT(summary, HasSubstr("120 samples taken, 112 emitted, 8 lost"));
  EXPECT_THAT(summary, HasSubstr("counts-full 5: raise --hash-storage-size"));
  EXPECT_THAT(summary, HasSubstr("truncated 4: raise --max-stack-depth"));
  EXPECT_THAT(summary, HasSubstr("\nthe event did not run for 2.5 % of"));
  EXPECT_THAT(summary, Not(HasSubstr("stack-missing")));
}

// Where stacks are walked by tables the summary says how they ended.
TEST(SummaryTest, TellsHowUserStacksEnded) {
  TestProfile profile;
  Accounting accounting = {.taken = 10, .emitted = 10};
  accounting.user_stack_ends[static_cast<size_t>(StackEnd::kOutermost)] = 5;
  accounting.user_stack_ends[static_cast<size_t>(StackEnd::kZeroFramePointer)] =
      1;
  accounting.user_stack_ends[static_cast<size_t>(StackEnd::kBadRead)] = 2;
  accounting.helped_by_frame_pointers = 3;
  profile.builder().Add(accounting);
  Profile finished = std::move(profile).Finish();
  finished.metadata.unwind = "auto";
  EXPECT_THAT(SummaryLine(finished),
              HasSubstr("\nuser stacks: 75.0 % reach the outermost frame "
                        "(bad-read 2); 3 helped by frame pointers"));
  finished.metadata.unwind = "fp";
  EXPECT_THAT(SummaryLine(finished), Not(HasSubstr("user stacks")));
}

// A stack whose root end is missing starts with a mark in every format.
TEST(OutputTest, MarksBrokenStacks) {
  struct Case {
    StackState state;
    std::string mark;
    std::string json;
  };
  const Case cases[] = {
      {StackState::kTruncated, "[truncated]", "\"truncated\""},
      {StackState::kBroken, "[truncated]", "\"broken\""},
      {StackState::kNoTable, "[truncated: no-table]",
       "\"broken\",\"user_end\":\"no-table\""},
      {StackState::kBeyondCopy, "[truncated: beyond-copy]",
       "\"broken\",\"user_end\":\"beyond-copy\""}};
  for (const auto& [state, mark, json] : cases) {
    TestProfile made;
    made.builder().AddSample({.comm = made.builder().Intern("a"),
                              .pid = 1,
                              .user_state = state,
                              .count = 1});
    const Profile profile = std::move(made).Finish();
    EXPECT_EQ(RenderFolded(profile, {}), "a;" + mark + " 1\n");
    EXPECT_THAT(RenderText(profile, {}), HasSubstr("    " + mark + "\n"));
    EXPECT_THAT(RenderJson(profile, {}), HasSubstr("\"user_state\":" + json));
  }
}

// Names that anyone chooses stand there once for each frame.
TEST(FormatTest, IsBounded) {
  TestProfile p;
  const std::string name(1000, 'n');
  for (unsigned i = 0; i < 100; ++i) {
    const FrameId f = p.User(name + std::to_string(i));
    p.Add({.user = std::vector<FrameId>(100, f), .count = 1});
  }
  const Profile profile = std::move(p).Finish();
  for (const FormatRow& row : FormatRows()) {
    SCOPED_TRACE(row.name);
    const std::string whole = Render(profile, row.format, {});
    EXPECT_EQ(RenderWithin(whole.size(), profile, row.format, {}), whole);
    const auto bounded =
        RenderWithin(whole.size() - 1, profile, row.format, {});
    ASSERT_FALSE(bounded);
    EXPECT_EQ(bounded.error().code(), ksym::ErrorCode::kLimit);
  }
}

// Names and extensions of formats; anything else is refused.
TEST(FormatTest, Parses) {
  EXPECT_EQ(*ParseOutputFormat("folded"), OutputFormat::kFolded);
  EXPECT_EQ(*ParseOutputFormat("text"), OutputFormat::kText);
  EXPECT_EQ(*ParseOutputFormat("json"), OutputFormat::kJson);
  EXPECT_EQ(ParseOutputFormat("JSON").error().code(),
            ksym::ErrorCode::kInvalid);
  EXPECT_EQ(FormatOfExtension("a/b.folded"), OutputFormat::kFolded);
  EXPECT_EQ(FormatOfExtension("b.txt"), OutputFormat::kText);
  EXPECT_EQ(FormatOfExtension("b.json"), OutputFormat::kJson);
  EXPECT_EQ(FormatOfExtension("folded"), std::nullopt);
  EXPECT_EQ(FormatOfExtension("b.json/out"), std::nullopt);
}

// Inlined frames are frames of their own, marked where marks were asked for.
TEST(InlinedFramesTest, Folded) {
  TestProfile p;
  p.Add({.user = {p.Inlined("inner_[i]", "/a.h", 5),
                  p.Placed("outer", "/a.cc", 30)},
         .count = 3});
  const Profile profile = std::move(p).Finish();
  EXPECT_EQ(RenderFolded(profile, {}), "app;outer;inner_(i) 3\n");
  EXPECT_EQ(RenderFolded(profile, {.annotations = true}),
            "app;outer;inner_(i)_[i] 3\n");
}

// What is no code has no place in any: why a thread waited, who woke it, and
// functions that an interpreter knows.
TEST(FramesWithoutCodeTest, HaveNoOffsets) {
  TestProfile p;
  std::vector<FrameId> frames;
  const auto add = [&](std::string_view name, const FrameKind& kind) {
    frames.push_back(p.builder().AddFrame(
        {.name = p.builder().Intern(name), .kind = &kind}));
  };
  add("--", kWakerFrame);
  add("[blocked: futex]", kWaitFrame);
  add("[waits for the GIL]", kPythonFrame);
  p.Add({.kernel = frames});
  const Profile profile = std::move(p).Finish();
  EXPECT_EQ(RenderText(profile, {}),
            "    --\n"
            "    [blocked: futex]\n"
            "    [waits for the GIL]\n"
            "    -                app (7)\n        1\n\n");
  EXPECT_THAT(Render(profile, OutputFormat::kPerfScript, {}),
              Not(HasSubstr("+0x")));
  const auto json = nlohmann::json::parse(RenderJson(profile, {}));
  EXPECT_EQ(json.at("frames")[1],
            nlohmann::json({{"name", "[blocked: futex]"}, {"kind", "wait"}}));
}

TEST(InlinedFramesTest, JsonAndText) {
  TestProfile p;
  p.Add({.user = {p.Inlined("inner", "/a.h", 5), p.Placed("outer", "/a.cc", 0),
                  p.User("main")}});
  const Profile profile = std::move(p).Finish();
  const auto json = nlohmann::json::parse(RenderJson(profile, {}));
  const auto& frames = json.at("frames");
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0].at("name"), "inner");
  EXPECT_EQ(frames[0].at("inlined"), true);
  EXPECT_EQ(frames[0].at("file"), "/a.h");
  EXPECT_EQ(frames[0].at("line"), 5);
  EXPECT_FALSE(frames[1].contains("inlined"));
  EXPECT_FALSE(frames[1].contains("file"));
  EXPECT_EQ(frames[2].at("line"), 0);
  EXPECT_EQ(RenderText(profile, {}),
            "    inner+0x4 [app] (inlined) /a.h:5\n"
            "    outer+0x10 [app] /a.cc:0\n"
            "    main+0x10 [app]\n"
            "    -                app (7)\n        1\n\n");
}

}  // namespace
}  // namespace profd
