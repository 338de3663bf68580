// SPDX-License-Identifier: Apache-2.0
#include "daemon/input/profile_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/output/format.h"
#include "daemon/profile/kind_select.h"
#include "ksym/base/bounded_name.h"
#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr OutputOptions kAnnotated = {.annotations = true};

Profile Read(std::string_view bytes) {
  auto profile = ReadProfile(bytes);
  if (profile) return std::move(*profile);
  ADD_FAILURE() << profile.error().message();
  return {};
}

std::string ErrorOf(std::string_view bytes) {
  const auto profile = ReadProfile(bytes);
  return profile ? "" : profile.error().message();
}

std::string Folded(const Profile& profile) {
  return Render(profile, OutputFormat::kFolded, kAnnotated);
}

// A profile with inlined calls, lines, a module of the kernel and a JIT frame.
Profile Sampled() {
  TestProfile p;
  const auto work = p.Placed("work", "/src/work.cc", 12);
  const auto inlined = p.Inlined("Inner<int (*)(char)>", "/src/inner.h", 3);
  const auto main = p.User("main");
  p.Add({.user = {inlined, work, main},
         .kernel = {p.Kernel("ext4_write", "[ext4]"), p.Kernel("vfs_write")},
         .count = 5});
  p.Add({.comm = "two words", .pid = 9, .user = {work, main}, .count = 2});
  p.Add({.user = {p.User("[libz.so.1]", "/usr/lib/libz.so.1",
                         ksym::Unresolved::kNoSymbols),
                  main},
         .count = 1});
  Accounting accounting;
  accounting.taken = 10;
  accounting.emitted = 8;
  accounting.lost_by_cause[static_cast<size_t>(LossCause::kRingFull)] = 2;
  p.builder().Add(accounting);
  return std::move(p).Finish();
}

// The JSON document says everything: what is read of it writes the same.
TEST(ProfileInputTest, ReadsItsOwnJson) {
  for (const uint32_t seed : {1U, 2U}) {
    const Profile profile = ExampleProfile(seed);
    const OutputOptions options = {.by = OutputOptions::By::kTid,
                                   .addresses = true};
    const std::string json = Render(profile, OutputFormat::kJson, options);
    EXPECT_EQ(Render(Read(json), OutputFormat::kJson, options), json);
  }
  const std::string json = Render(Sampled(), OutputFormat::kJson, {});
  EXPECT_EQ(Render(Read(json), OutputFormat::kJson, {}), json);
}

// The sums of threads' time stay when JSON is read, and a list that is longer
// than what it says is refused.
TEST(ProfileInputTest, ReadsSumsOfThreads) {
  Profile profile = Sampled();
  profile.thread_sums = {
      .sum = {100, 20, 300},
      .count = 3,
      .threads = {{2, 3, "b", {1, 2, 3}}, {1, 9, "a", {4, 5, 6}}}};
  std::string json = Render(profile, OutputFormat::kJson, {});
  EXPECT_EQ(Render(Read(json), OutputFormat::kJson, {}), json);
  EXPECT_EQ(Read(json).thread_sums.sum, (StateTimes{100, 20, 300}));
  const size_t at = json.find("\"threads\":3");
  json.replace(at, 11, "\"threads\":1");
  EXPECT_THAT(ErrorOf(json), HasSubstr("threads[1]: is one too many"));
}

// A kind of frame that this version does not know is refused, and so is inlined
// code where there can be none: neither becomes another kind's.
TEST(ProfileInputTest, RefusesUnknownKindsOfFrames) {
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
TEST(ProfileInputTest, KeepsKindsOfFrames) {
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
TEST(ProfileInputTest, KeepsFramesThatAreNoNativeCode) {
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
  p.Add({.user = {python, p.User("main")},
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
TEST(ProfileInputTest, KeepsMarksOfParkedThreads) {
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
TEST(ProfileInputTest, ReadsKindsOfJson) {
  const Profile profile = OfTwoKinds();
  const std::string json = Render(profile, OutputFormat::kJson, {});
  const Profile read = Read(json);
  EXPECT_EQ(read.metadata.kinds, profile.metadata.kinds);
  EXPECT_EQ(read.accounting.emitted, 8u);
  EXPECT_EQ(Render(read, OutputFormat::kJson, {}), json);
}

// Stacks must say which of several kinds they are of, and kinds differ in name.
TEST(ProfileInputTest, RefusesUnknownKindsOfJson) {
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
TEST(ProfileInputTest, ReadsKindsOfPprof) {
  Profile read = Read(Render(OfTwoKinds(), OutputFormat::kPprof, {}));
  EXPECT_EQ(read.metadata.kinds, OfTwoKinds().metadata.kinds);
  EXPECT_EQ(Folded(read), "app;main;work 5\n");
  ASSERT_TRUE(ShowKind("blocked", read));
  EXPECT_EQ(Folded(read), "app;main;read 1\napp;main;work 1\n");
}

// Kinds that count samples stay such, with their rate and the number, and what
// is read of pprof and of JSON writes the same again.
TEST(ProfileInputTest, KeepsKindsThroughPprof) {
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
TEST(ProfileInputTest, ReadsThePeriodOfPprof) {
  Profile profile = Sampled();
  profile.metadata.kinds = {EventKind("page-faults", 0, 10)};
  const Profile read = Read(Render(profile, OutputFormat::kPprof, {}));
  EXPECT_EQ(read.metadata.kinds, profile.metadata.kinds);
  EXPECT_EQ(Folded(read), Folded(profile));
}

// Folded stacks come out as they went in, with and without marks.
TEST(ProfileInputTest, ReadsItsOwnFoldedStacks) {
  const std::string folded = Folded(Sampled());
  EXPECT_THAT(folded, HasSubstr("ext4_write_[k] 5\n"));
  EXPECT_THAT(folded, HasSubstr("Inner<int (*)(char)>_[i];"));
  EXPECT_EQ(Folded(Read(folded)), folded);
  const OutputOptions delimited = {.delimiter = true};
  const std::string marked =
      Render(Sampled(), OutputFormat::kFolded, delimited);
  EXPECT_EQ(Render(Read(marked), OutputFormat::kFolded, delimited), marked);
}

// pprof and perf's text keep the stacks, which frames are the kernel's, and
// which are inlined.
TEST(ProfileInputTest, ReadsPprofAndPerfScript) {
  const std::string folded = Folded(Sampled());
  EXPECT_EQ(Folded(Read(Render(Sampled(), OutputFormat::kPprof, {}))), folded);
  EXPECT_EQ(Folded(Read(Render(Sampled(), OutputFormat::kPerfScript, {}))),
            folded);
}

// A waker's frames stay behind the kernel's of the thread that it woke, and a
// function that is called as the divider between the two is none.
TEST(ProfileInputTest, KeepsWakersInTheirPlaces) {
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

// What perf 6.1 prints: ids with and without a CPU, commands with spaces and
// numbers, events with colons, inlined calls, frames without a symbol, source
// lines, a sample without a stack.
TEST(ProfileInputTest, ReadsWhatPerfPrints) {
  const Profile profile = Read(
      "# ========\n# captured on    : Fri Nov 20 2026\n# ========\n#\n"
      "spin 16276   789.674523:   10101010 cpu-clock:pppH: \n"
      "\tffffffff81000020 vfs_read+0x20 ([kernel.kallsyms])\n"
      "\t            115e operator new(unsigned long) (inlined)\n"
      "\t            115e leaf+0x25 (/opt/my app/spin)\n"
      "  spin.c:12\n"
      "\t            2000 [unknown] (/usr/lib/libz.so.1)\n\n"
      "a 7 b 31/32 [001]   789.7: cpu-clock:pppH:      115e leaf+0x1 "
      "(/opt/spin)\n");
  EXPECT_EQ(Folded(profile),
            "a 7 b;leaf 1\n"
            "spin;[libz.so.1];leaf;operator new(unsigned long)_[i];vfs_read_[k]"
            " 1\n");
  EXPECT_THAT(profile.metadata.warnings, IsEmpty());
}

// What our own writer does to names and modules for other readers is undone.
TEST(ProfileInputTest, ReadsOurPerfScript) {
  const Profile profile = Read(
      "a 1/1 1.000001: 1 cycles: \n"
      "\t ffffffffc0001020 ext4_read+0x20 ([ext4].ko)\n"
      "\t 10 ::(anonymous namespace)::f()+0x1 (/a)\n\n");
  EXPECT_EQ(Folded(profile), "a;(anonymous namespace)::f();ext4_read_[k] 1\n");
  EXPECT_EQ(profile.String(profile.frames[0].object), "[ext4]");
}

// Samples of a second event are not added to those of the first.
TEST(ProfileInputTest, LeavesOtherEventsOut) {
  const Profile profile = Read(
      "a 1 1.000001: cycles: \n\t 10 f+0x1 (/a)\n\n"
      "a 1 1.000002: page-faults: \n\t 10 g+0x1 (/a)\n\n");
  EXPECT_EQ(Folded(profile), "a;f 1\n");
  EXPECT_THAT(profile.metadata.warnings,
              ElementsAre(HasSubstr("1 samples of other events than cycles")));
}

// A line that is no stack costs itself only, and is said.
TEST(ProfileInputTest, SkipsWhatItCannotRead) {
  const Profile profile = Read("a;b 1\n\nnonsense\n# comment\na;c 2.5\na;d 3");
  EXPECT_EQ(Folded(profile), "a;b 1\na;d 3\n");
  EXPECT_THAT(profile.metadata.warnings,
              ElementsAre(AllOf(HasSubstr("2 parts"), HasSubstr("line 3"))));
}

// What is no profile is refused with the place and the cure.
TEST(ProfileInputTest, RefusesWhatIsNoProfile) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf(" \n\n"), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf("nothing here"), HasSubstr("line 1"));
  EXPECT_THAT(ErrorOf("PERFILE2\x68"), HasSubstr("perf script"));
  EXPECT_THAT(ErrorOf("{"), HasSubstr("no JSON at byte 2"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("not of ksym-profile"));
  EXPECT_THAT(ErrorOf("{\"metadata\": {\"format\": \"ksym-dump\"}}"),
              HasSubstr("as pprof"));
  EXPECT_THAT(ErrorOf("a;b 9223372036854775807\na;c 1"), HasSubstr("2^63"));
  EXPECT_THAT(ErrorOf("\x1f\x8b\x08"), HasSubstr("gzip"));
  EXPECT_THAT(ErrorOf(std::string_view("\x0a\x00\x01", 3)), HasSubstr("pprof"));
}

// Whatever part of a pprof or JSON file is cut off, it is an error and no other
// profile.
TEST(ProfileInputTest, RefusesTruncatedFiles) {
  for (const OutputFormat format :
       {OutputFormat::kPprof, OutputFormat::kJson}) {
    const std::string whole = Render(Sampled(), format, {});
    // JSON ends in a newline that it can do without.
    for (size_t size = 0; size + 2 < whole.size(); ++size) {
      EXPECT_NE(ErrorOf(std::string_view(whole).substr(0, size)), "") << size;
    }
  }
}

// A frame that is not there is named by its place.
TEST(ProfileInputTest, NamesTheWrongPlaceOfJson) {
  std::string json = Render(Sampled(), OutputFormat::kJson, {});
  const size_t at = json.find("\"user\":[") + 8;
  json.insert(at, "99");
  EXPECT_THAT(ErrorOf(json), HasSubstr("stacks[0].user[0]"));
}

// A protocol buffer's field, whose length is below 2^14.
std::string Field(char number, std::string_view content) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  field += static_cast<char>((content.size() & 127) | 128);
  field += static_cast<char>(content.size() >> 7);
  return field.append(content);
}

// A sample of the values of two types as a heap profile has them.
std::string HeapPprof() {
  const std::string location = "\x08\x01";
  std::string file;
  for (const std::string_view text :
       {"", "alloc_objects", "count", "inuse_space", "bytes"}) {
    file += Field(6, text);
  }
  return file + Field(1, "\x08\x01\x10\x02") + Field(1, "\x08\x03\x10\x04") +
         Field(4, location) + Field(2, "\x0a\x01\x01\x12\x02\x03\x60");
}

// Bytes and objects are no samples: they are values, so that no format has them
// under a name that is not theirs, however often they are read and written.
TEST(ProfileInputTest, ValuesOfPprofAreNoSamples) {
  Profile read = Read(HeapPprof());
  ASSERT_EQ(read.metadata.kinds.size(), 2u);
  EXPECT_EQ(read.metadata.kinds[0].name, "inuse_space");
  EXPECT_TRUE(read.metadata.kinds[0].has_values);
  EXPECT_TRUE(read.metadata.kinds[1].has_values);
  EXPECT_EQ(read.accounting.emitted, 0u);
  const std::string json = Render(read, OutputFormat::kJson, {});
  EXPECT_THAT(json, HasSubstr(R"("count":0,"value":96})"));
  EXPECT_THAT(Render(read, OutputFormat::kFolded, {}), HasSubstr(" 96\n"));
  const Profile again = Read(Render(read, OutputFormat::kPprof, {}));
  EXPECT_EQ(again.metadata.kinds, read.metadata.kinds);
  EXPECT_EQ(Render(again, OutputFormat::kFolded, {}),
            Render(read, OutputFormat::kFolded, {}));
}

// Values add up as counts do, until 2^63: one more is refused and none wraps.
TEST(ProfileInputTest, BoundsValues) {
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

// Samples of one stack, which is so many times one place of so many lines.
std::string Pprof(size_t lines, size_t places, size_t samples) {
  std::string location = "\x08\x01";
  for (size_t i = 0; i < lines; ++i) location += std::string("\x22\x00", 2);
  const std::string sample = Field(1, std::string(places, 1)) + "\x10\x01";
  std::string file = Field(6, "") + Field(6, "samples") + Field(6, "count") +
                     Field(1, "\x08\x01\x10\x02") + Field(4, location);
  for (size_t i = 0; i < samples; ++i) file += Field(2, sample);
  return file;
}

// Few bytes that stand for stacks of any size are refused; the largest that
// are not are read.
TEST(ProfileInputTest, BoundsStacksOfPprof) {
  EXPECT_THAT(ErrorOf(Pprof(4097, 1, 1)), HasSubstr("more than 4096 lines"));
  EXPECT_THAT(ErrorOf(Pprof(4096, 17, 1)), HasSubstr("more than 65536 frames"));
  EXPECT_EQ(Read(Pprof(4096, 16, 1)).accounting.emitted, 1u);
  EXPECT_THAT(ErrorOf(Pprof(4096, 16, 30)), HasSubstr("far more frames"));
}

// Names and paths of others are as long as those of a capture may be at the
// most, whichever format they come in.
TEST(ProfileInputTest, BoundsNames) {
  const std::string whole(ksym::kMaxShownBytes, 'w');
  const std::string longer(ksym::kMaxShownBytes + 1, 'l');
  const std::string path = "/" + std::string(5000, 'p');
  TestProfile p;
  p.Add({.comm = std::string(5000, 'c'),
         .user = {p.Placed(whole, path, 7), p.User(longer, path)},
         .kernel = {p.Kernel(std::string(70'000, 'k'), "[" + longer + "]")},
         .count = 1});
  const Profile written = std::move(p).Finish();
  for (const OutputFormat format :
       {OutputFormat::kFolded, OutputFormat::kJson, OutputFormat::kPprof,
        OutputFormat::kPerfScript}) {
    const Profile read = Read(Render(written, format, kAnnotated));
    bool has_whole = false;
    for (StringId id = 0; id < read.strings.size(); ++id) {
      EXPECT_LE(read.String(id).size(), ksym::kMaxShownBytes)
          << static_cast<int>(format);
      has_whole |= read.String(id) == whole;
    }
    EXPECT_TRUE(has_whole) << static_cast<int>(format);
    EXPECT_EQ(read.samples.size(), 1u) << static_cast<int>(format);
  }
}

// As are levels that no profile has, but not brackets in a text, and numbers
// that no type has.
TEST(ProfileInputTest, BoundsJson) {
  const std::string deep = "{\"a\": " + std::string(1000, '[');
  EXPECT_THAT(ErrorOf(deep), HasSubstr("32 levels"));
  const std::string text = "{\"a\": \"" + std::string(1000, '[') + "\\\"[\"}";
  EXPECT_THAT(ErrorOf(text), HasSubstr("not of ksym-profile"));
  EXPECT_THAT(ErrorOf("{\"metadata\": 1e999}"), HasSubstr("number overflow"));
}

}  // namespace
}  // namespace profd
