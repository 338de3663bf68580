// SPDX-License-Identifier: Apache-2.0
// What kinds of frames and of samples become when a profile is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/input/input_builder.h"
#include "daemon/output/format.h"
#include "daemon/profile/kind_select.h"
#include "tests/daemon/input/input_profiles.h"
#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

using ::testing::HasSubstr;

// A kind of frame that this version does not know is refused, and so is inlined
// code where there can be none: neither becomes another kind's.
TEST(InputKindsTest, RefusesUnknownKindsOfFrames) {
  const std::string json = Render(Sampled(), OutputFormat::kJson, {});
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = json;
    changed.replace(changed.find(from), from.size(), to);
    return ErrorOf(changed);
  };
  EXPECT_THAT(with(R"("kind":"user")", R"("kind":"else")"),
              HasSubstr("frames[0]: is of an unknown kind"));
  EXPECT_THAT(with(R"("kind":"user")", R"("unkind":"user")"),
              HasSubstr("is of an unknown kind"));
  const std::string_view inlined = R"("kind":"user","module":"/bin/app",)";
  ASSERT_THAT(json, HasSubstr(inlined));
  EXPECT_THAT(with(inlined, R"("kind":"python","inlined":true,)"),
              HasSubstr("is of a kind that is not inlined"));
}

// Kinds that share a name are told apart by what else is known of a frame: code
// without a file, BPF programs and inlined calls, of the kernel as well.
TEST(InputKindsTest, KeepsKindsOfFrames) {
  TestProfile p;
  ProfileBuilder& builder = p.builder();
  const auto inlined = builder.AddFrame({.name = builder.Intern("in"),
                                         .object = builder.Intern("[kernel]"),
                                         .kind = &kInlinedKernelFrame});
  p.Add({.user = {p.User("js", ""), p.User("main")},
         .kernel = {p.Kernel("bpf_prog_x", "[bpf]"), inlined,
                    p.Kernel("vfs_read"),
                    p.Kernel("kprobe_x", "[__builtin__kprobes]")}});
  const Profile written = std::move(p).Finish();
  const auto kinds_of = [](const Profile& profile) {
    std::map<std::string, const FrameKind*> kinds;
    for (const Frame& frame : profile.frames) {
      kinds[std::string(profile.String(frame.name))] = frame.kind;
    }
    return kinds;
  };
  const auto kinds = kinds_of(written);
  EXPECT_EQ(kinds.at("js"), &kJitFrame);
  EXPECT_EQ(kinds.at("kprobe_x"), &kTrampolineFrame);
  for (const auto format : {OutputFormat::kJson, OutputFormat::kPprof}) {
    EXPECT_EQ(kinds_of(Read(Render(written, format, {}))), kinds);
  }
  const auto folded = kinds_of(Read(Folded(written)));
  EXPECT_EQ(folded.at("in"), &kInlinedKernelFrame);
  EXPECT_EQ(folded.at("js"), &kUserFrame);  // nothing tells of files
}

// Frames that are no native code stay what they are in JSON: why a thread
// waited, who woke it, and functions of Python, with all that is known of them.
TEST(InputKindsTest, KeepsFramesThatAreNoNativeCode) {
  TestProfile p;
  ProfileBuilder& builder = p.builder();
  const auto wait = builder.AddFrame(
      {.name = builder.Intern("[blocked: read]"), .kind = &kWaitFrame});
  const auto waker =
      builder.AddFrame({.name = builder.Intern("--"), .kind = &kWakerFrame});
  const auto python = builder.AddFrame({.name = builder.Intern("run (a.py)"),
                                        .kind = &kPythonFrame,
                                        .file = builder.Intern("/src/a.py"),
                                        .line = 7,
                                        .function = builder.Intern("run"),
                                        .first_line = 3});
  const auto javascript = [&](std::string_view name, const FrameKind& kind) {
    return builder.AddFrame({.name = builder.Intern(name),
                             .kind = &kind,
                             .file = builder.Intern("/src/a.js"),
                             .line = 9,
                             .function = builder.Intern(name),
                             .line_is_near = &kind != &kJavaScriptFrame});
  };
  const auto inlined = builder.AddFrame({.name = builder.Intern("a.B.run"),
                                         .kind = &kJavaInlinedFrame,
                                         .file = builder.Intern("B.java"),
                                         .line = 7,
                                         .function = builder.Intern("a.B.run"),
                                         .line_is_near = true});
  const auto java = builder.AddFrame({.name = builder.Intern("a.B.main"),
                                      .kind = &kJavaFrame,
                                      .function = builder.Intern("a.B.main")});
  p.Add({.user = {inlined, java, javascript("in", kJavaScriptInlinedFrame),
                  javascript("out", kJavaScriptFrame),
                  javascript("slow", kJavaScriptInterpretedFrame), python,
                  p.User("main")},
         .kernel = {p.Kernel("wake_up"), waker, p.Kernel("schedule"), wait}});
  Accounting accounting;
  accounting.taken = 1;
  accounting.emitted = 1;
  builder.Add(accounting);
  const std::string json =
      Render(std::move(p).Finish(), OutputFormat::kJson, {});
  EXPECT_THAT(json, HasSubstr(R"("kind":"wait")"));
  EXPECT_THAT(json, HasSubstr(R"("kind":"waker")"));
  EXPECT_THAT(json, HasSubstr(R"("function":"run")"));
  EXPECT_THAT(json, HasSubstr(R"("kind":"javascript-interpreted")"));
  EXPECT_THAT(json, HasSubstr(R"("inlined":true,"approximate":true)"));
  EXPECT_THAT(
      json, HasSubstr(R"("inlined":true,"approximate":true,"file":"B.java")"));
  EXPECT_EQ(Render(Read(json), OutputFormat::kJson, {}), json);
}

// A profile whose first sample is of a thread that is parked.
Profile WithParked() {
  TestProfile p;
  const auto stack = {p.User("wait"), p.User("main")};
  p.Add({.user = stack, .count = 3});
  p.Add({.user = stack, .count = 4});
  Profile profile = std::move(p).Finish();
  profile.samples.push_back(profile.samples.front());
  profile.samples.back().parked = true;
  return profile;
}

// Samples of parked threads have their mark in JSON and in pprof, and what is
// read of these keeps it.
TEST(InputKindsTest, KeepsMarksOfParkedThreads) {
  for (const auto format : {OutputFormat::kJson, OutputFormat::kPprof}) {
    const Profile read = Read(Render(WithParked(), format, {}));
    ASSERT_EQ(read.samples.size(), 2u);
    const auto& [one, other] =
        std::pair(read.samples.front(), read.samples.back());
    EXPECT_NE(one.parked, other.parked);
    EXPECT_EQ(one.count, 7u);
    EXPECT_EQ(other.count, 7u);
  }
}

const LabelSet kOfPod = {{.key = "k8s.container.name", .value = "nginx"},
                         {.key = "k8s.namespace.name", .value = "shop"},
                         {.key = "k8s.pod.name", .value = "web-0"},
                         {.key = "service.name", .value = "a\"b"}};

LabelSet LabelsOf(const Profile& profile, const ProfileSample& sample) {
  LabelSet labels;
  for (const auto& [key, value] : profile.LabelsOf(sample)) {
    labels.push_back({.key = std::string(profile.String(key)),
                      .value = std::string(profile.String(value))});
  }
  return labels;
}

// Samples that differ by labels alone stay apart in JSON and in pprof, and what
// is read of these has the labels; those that only a process claims are kept in
// JSON.
TEST(InputKindsTest, KeepsLabels) {
  for (const auto format : {OutputFormat::kJson, OutputFormat::kPprof}) {
    TestProfile p;
    const auto main = p.User("main");
    LabelSet more = kOfPod;
    more.push_back({.key = "team", .value = "a"});
    p.Add({.user = {main}, .count = 5, .labels = more});
    p.Add({.user = {main}, .count = 3});
    p.Add({.user = {main}, .count = 2, .labels = more});
    const Profile read = Read(Render(std::move(p).Finish(), format, {}));
    ASSERT_EQ(read.samples.size(), 2u);
    for (const ProfileSample& sample : read.samples) {
      const LabelSet& all = format == OutputFormat::kJson ? more : kOfPod;
      EXPECT_EQ(LabelsOf(read, sample), sample.count == 7 ? all : LabelSet());
      EXPECT_TRUE(sample.count == 7 || sample.count == 3) << sample.count;
    }
  }
}

// A file may have so many labels of a sample, of which those beyond are left
// out, and texts only.
TEST(InputKindsTest, BoundsLabels) {
  const auto document = [](const std::string& labels) {
    TestProfile p;
    p.Add({.user = {p.User("main")}});
    std::string text = Render(std::move(p).Finish(), OutputFormat::kJson, {});
    const std::string place = R"("user_state")";
    return text.insert(text.find(place), R"("labels":)" + labels + ",");
  };
  std::string many = "{";
  for (size_t i = 0; i <= InputBuilder::kMaxLabels; ++i) {
    many += (i == 0 ? "\"a" : ",\"a") + std::to_string(i) + "\":\"b\"";
  }
  const Profile read = Read(document(many + "}"));
  EXPECT_EQ(read.LabelsOf(read.samples.front()).size(),
            InputBuilder::kMaxLabels);
  EXPECT_THAT(
      read.metadata.warnings,
      testing::Contains("1 label is left out: a sample has 64 at the most"));
  for (const char* labels : {"[]", "7", R"({"a":7})", R"({"a":null})"}) {
    EXPECT_THAT(ErrorOf(document(labels)), HasSubstr("labels: ")) << labels;
  }
}

// Samples of CPU time and of waits, which have a length each.
Profile OfTwoKinds() {
  TestProfile p;
  const auto main = p.User("main");
  p.Add({.user = {p.User("work"), main}, .count = 5});
  p.Add({.user = {p.User("read"), main}, .kind = 1, .count = 2, .value = 900});
  p.Add({.user = {p.User("work"), main}, .kind = 1, .count = 1, .value = 7});
  Accounting accounting;
  accounting.taken = 8;
  accounting.emitted = 8;
  p.builder().Add(accounting);
  Profile profile = std::move(p).Finish();
  profile.metadata.kinds.push_back({.name = "blocked",
                                    .unit = "nanoseconds",
                                    .event = "sched_switch",
                                    .has_values = true});
  return profile;
}

// JSON keeps the kinds of samples, their counts and their values.
TEST(InputKindsTest, ReadsKindsOfJson) {
  const Profile profile = OfTwoKinds();
  const std::string json = Render(profile, OutputFormat::kJson, {});
  const Profile read = Read(json);
  EXPECT_EQ(read.metadata.kinds, profile.metadata.kinds);
  EXPECT_EQ(read.accounting.emitted, 8u);
  EXPECT_EQ(Render(read, OutputFormat::kJson, {}), json);
}

// Stacks must say which of several kinds they are of, and kinds differ in name.
TEST(InputKindsTest, RefusesUnknownKindsOfJson) {
  const std::string json = Render(OfTwoKinds(), OutputFormat::kJson, {});
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = json;
    changed.replace(changed.find(from), from.size(), to);
    return ErrorOf(changed);
  };
  EXPECT_THAT(with(R"("sample_kind":"blocked")", R"("sample_kind":"else")"),
              HasSubstr("an unknown kind"));
  EXPECT_THAT(with(R"({"name":"blocked")", R"({"name":"cpu")"),
              HasSubstr("the name of another one"));
}

// pprof has each kind as a type of its values; the number of samples behind a
// value is not in it. Folded, time is in microseconds, at least one.
TEST(InputKindsTest, ReadsKindsOfPprof) {
  Profile read = Read(Render(OfTwoKinds(), OutputFormat::kPprof, {}));
  EXPECT_EQ(read.metadata.kinds, OfTwoKinds().metadata.kinds);
  EXPECT_EQ(Folded(read), "app;main;work 5\n");
  ASSERT_TRUE(ShowKind("blocked", read));
  EXPECT_EQ(Folded(read), "app;main;read 1\napp;main;work 1\n");
}

// Kinds that count samples stay such, with their rate and the number, and what
// is read of pprof and of JSON writes the same again.
TEST(InputKindsTest, KeepsKindsThroughPprof) {
  Profile profile = OfTwoKinds();
  profile.metadata.kinds.push_back(EventKind("page-faults", 0, 10));
  profile.samples.push_back(profile.samples[0]);
  profile.samples.back().kind = 2;
  profile.samples.back().count = 4;
  const std::string pprof = Render(profile, OutputFormat::kPprof, {});
  const Profile read = Read(pprof);
  EXPECT_EQ(read.metadata.kinds, profile.metadata.kinds);
  EXPECT_EQ(read.accounting.emitted, 9u);
  uint64_t faults = 0;
  for (const ProfileSample& sample : read.samples) {
    if (sample.kind == 2) faults += sample.count;
  }
  EXPECT_EQ(faults, 4u);
  const std::string json = Render(read, OutputFormat::kJson, {});
  EXPECT_EQ(Render(Read(json), OutputFormat::kJson, {}), json);
  const Profile again = Read(Render(Read(json), OutputFormat::kPprof, {}));
  EXPECT_EQ(again.metadata.kinds, read.metadata.kinds);
  EXPECT_EQ(Render(again, OutputFormat::kJson, {}),
            Render(Read(Render(again, OutputFormat::kPprof, {})),
                   OutputFormat::kJson, {}));
}

// Samples of another event than the clock are known by the period's type.
TEST(InputKindsTest, ReadsThePeriodOfPprof) {
  Profile profile = Sampled();
  profile.metadata.kinds = {EventKind("page-faults", 0, 10)};
  const Profile read = Read(Render(profile, OutputFormat::kPprof, {}));
  EXPECT_EQ(read.metadata.kinds, profile.metadata.kinds);
  EXPECT_EQ(Folded(read), Folded(profile));
}

// A waker's frames stay behind the kernel's of the thread that it woke, and a
// function that is called as the divider between the two is none.
TEST(InputKindsTest, KeepsWakersInTheirPlaces) {
  TestProfile p;
  ProfileBuilder& builder = p.builder();
  const auto waker = [&](std::string_view name) {
    return builder.AddFrame(
        {.name = builder.Intern(name), .kind = &kWakerFrame});
  };
  p.Add({.user = {p.User("--"), p.User("main")},
         .kernel = {p.Kernel("wake_up_q"), p.User("work"), waker("writer"),
                    waker("--"), p.Kernel("schedule")}});
  const Profile profile = std::move(p).Finish();
  const std::string folded = Render(profile, OutputFormat::kFolded, {});
  EXPECT_EQ(folded, "app;main;__;schedule;--;writer;work;wake_up_q 1\n");
  for (const auto format : {OutputFormat::kFolded, OutputFormat::kJson,
                            OutputFormat::kPprof, OutputFormat::kPerfScript}) {
    const Profile read = Read(Render(profile, format, {}));
    EXPECT_EQ(Render(read, OutputFormat::kFolded, {}), folded);
  }
  std::string json = Render(profile, OutputFormat::kJson, {});
  for (int times = 0; times < 2; ++times) {
    EXPECT_THAT(json, HasSubstr(R"("name":"--","kind":"waker")"));
    EXPECT_THAT(json, HasSubstr(R"("name":"writer","kind":"waker")"));
    json = Render(Read(json), OutputFormat::kJson, {});
  }
}

// Values add up as counts do, until 2^63: one more is refused and none wraps.
TEST(InputKindsTest, BoundsValues) {
  const std::string json = Render(OfTwoKinds(), OutputFormat::kJson, {});
  const auto with = [&](std::string_view value) {
    std::string changed = json;
    const std::string_view from = R"("value":900)";
    return changed.replace(changed.find(from), from.size(),
                           R"("value":)" + std::string(value));
  };
  // The other stack has 7.
  Profile read = Read(with("9223372036854775800"));
  ASSERT_TRUE(ShowKind("blocked", read));
  EXPECT_THAT(Folded(read), HasSubstr(" 9223372036854776\n"));
  EXPECT_THAT(ErrorOf(with("9223372036854775801")), HasSubstr("2^63"));
  EXPECT_THAT(ErrorOf(with("18446744073709551615")), HasSubstr("2^63"));
}

}  // namespace
}  // namespace profd
