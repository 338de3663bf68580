// SPDX-License-Identifier: Apache-2.0
#include "daemon/input/profile_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "daemon/output/format.h"
#include "ksym/base/bounded_name.h"
#include "tests/daemon/input/input_profiles.h"
#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

// So are threads, in number and in how long their commands are.
TEST(ProfileInputTest, BoundsThreads) {
  Profile profile = Sampled();
  ThreadSums& sums = profile.thread_sums;
  sums.count = ThreadSums::kMaxThreads + 2;
  sums.threads.resize(ThreadSums::kMaxThreads);
  sums.threads.front().comm = std::string(ksym::kMaxShownBytes + 1, 'c');
  std::string json = Render(profile, OutputFormat::kJson, {});
  const ThreadSums read = Read(json).thread_sums;
  EXPECT_EQ(read.count, ThreadSums::kMaxThreads + 2);
  ASSERT_EQ(read.threads.size(), ThreadSums::kMaxThreads);
  for (const auto& thread : read.threads) {
    EXPECT_LE(thread.comm.size(), ksym::kMaxShownBytes);
  }
  const std::string_view count = "\"threads\":4098";
  json.replace(json.find(count), count.size(), "\"threads\":4294967296");
  EXPECT_THAT(ErrorOf(json), HasSubstr("thread_times.threads"));
  sums.threads.emplace_back();
  EXPECT_THAT(ErrorOf(Render(profile, OutputFormat::kJson, {})),
              HasSubstr("threads[4096]: is one too many"));
}

// So are levels that no profile has, but not brackets in a text, and numbers
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
