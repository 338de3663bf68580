// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "daemon/output/format.h"
#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct ReadSample {
  std::string thread;  // "COMM PID/TID"
  std::vector<std::string> frames;
};

// Reads the text by the rules of the Firefox Profiler's importer, which are
// those of stackcollapse-perf.pl, too:
// - a line without a space in front begins a sample: "COMM [PID/]TID TIME:";
// - one with '#' in front is a comment, an empty one ends the sample;
// - a frame is "ADDRESS NAME (MODULE)", the offset behind the name is dropped,
//   and a name that begins with a parenthesis is passed over.
// What is the kernel's gets "K " in front: the first one goes by "kallsyms" or
// a ".ko" at the end of the module, the second by a bracket at its beginning;
// where they differ it gets "? ".
class Importer {
 public:
  explicit Importer(const std::string& text) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) Take(line);
  }

  std::vector<ReadSample> samples;
  std::vector<std::string> refused;  // lines that are none of all that

 private:
  void Take(const std::string& line) {
    static const std::regex kSample(R"(^(\S.*)\s+(\d+/\d+)\s+\d+\.\d{6}:.*)");
    static const std::regex kFrame(R"(^\s*(\w+)\s*(.+) \(([^)\s]*)\)$)");
    static const std::regex kOffset(R"(\+0x[\da-f]+$)");
    std::smatch match;
    if (line.empty() || line.front() == '#') {
      in_sample_ = false;
    } else if (!in_sample_ && std::regex_match(line, match, kSample)) {
      samples.push_back({match[1].str() + ' ' + match[2].str(), {}});
      in_sample_ = true;
    } else if (in_sample_ && std::regex_match(line, match, kFrame)) {
      const std::string name = std::regex_replace(match[2].str(), kOffset, "");
      if (name.front() == '(') return;
      samples.back().frames.push_back(Mark(match[3].str()) + name);
    } else {
      refused.push_back(line);
    }
  }

  static std::string Mark(const std::string& module) {
    const bool first =
        module.find("kallsyms") != std::string::npos || module.ends_with(".ko");
    const bool second = module.starts_with('[') && module != "[unknown]";
    if (first != second) return "? ";
    return first ? "K " : "";
  }

  bool in_sample_ = false;
};

Importer Import(TestProfile profile) {
  return Importer(
      Render(std::move(profile).Finish(), OutputFormat::kPerfScript, {}));
}

// Whatever a profile has, each line is one that importers understand, and each
// sample is there.
TEST(PerfScriptTest, ImportersReadEachLine) {
  const Importer read(Render(ExampleProfile(1), OutputFormat::kPerfScript, {}));
  EXPECT_THAT(read.refused, IsEmpty());
  EXPECT_EQ(read.samples.size(), 112u);
}

// Kernel frames are known as such, also those of its modules.
TEST(PerfScriptTest, KernelFramesAreRecognised) {
  TestProfile p;
  p.Add({.user = {p.User("main")},
         .kernel = {p.Kernel("ext4_write", "[ext4]"), p.Kernel("vfs_write")}});
  const Importer read = Import(std::move(p));
  ASSERT_EQ(read.samples.size(), 1u);
  EXPECT_THAT(read.samples[0].frames,
              ElementsAre("K ext4_write", "K vfs_write", "main"));
}

// A kernel frame has its address or none: what lines are looked up by is not
// printed.
TEST(PerfScriptTest, KernelFramesWithoutAddresses) {
  TestProfile p;
  p.Add({.kernel = {p.Kernel("vfs_write")}});
  Profile profile = std::move(p).Finish();
  for (Frame& frame : profile.frames) {
    frame.address = 0;
    frame.file_offset = 0x1234abcd;
  }
  const std::string text = Render(profile, OutputFormat::kPerfScript, {});
  EXPECT_THAT(text, testing::HasSubstr(" 0 vfs_write"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("1234abcd")));
}

// Samples are spread over the capture, those with a value of their own as well,
// of which a stack is one with its amount as the period.
TEST(PerfScriptTest, SpreadsOverTheCapture) {
  TestProfile p;
  p.Add({.user = {p.User("a")}, .count = 1, .value = 3'000'000'000});
  p.Add({.user = {p.User("b")}, .count = 1, .value = 7});
  Profile profile = std::move(p).Finish();
  profile.metadata.kinds = {{.name = "blocked",
                             .unit = "nanoseconds",
                             .event = "sched_switch",
                             .has_values = true}};
  const std::string text = Render(profile, OutputFormat::kPerfScript, {});
  EXPECT_THAT(text, testing::HasSubstr(
                        "app 7/7 1700000000.123456: 3000000000 sched_switch:"));
  EXPECT_THAT(text, testing::HasSubstr(
                        "app 7/7 1700000005.123456:          7 sched_switch:"));
}

// No name makes an importer pass over its frame.
TEST(PerfScriptTest, NamesWithParentheses) {
  TestProfile p;
  p.Add(
      {.user = {p.User("(anonymous namespace)::Run(int)"),
                p.User("A::operator()(char) const"), p.User("f(void (*)())")}});
  const Importer read = Import(std::move(p));
  ASSERT_EQ(read.samples.size(), 1u);
  EXPECT_THAT(read.samples[0].frames,
              ElementsAre("::(anonymous namespace)::Run(int)",
                          "A::operator()(char) const", "f(void (*)())"));
}

// A command is whatever a program calls itself, and its sample is read.
TEST(PerfScriptTest, HostileCommands) {
  for (const auto& [comm, expected] :
       std::vector<std::pair<std::string_view, std::string>>{
           {" a", "_a 7/7"},
           {"#a", "_a 7/7"},
           {"", "[unknown] 7/7"},
           {"FS Broker 12", "FS Broker 12 7/7"},
           {"a\nb 1 1.0:", "a?b 1 1.0: 7/7"}}) {
    TestProfile p;
    p.Add({.comm = comm, .user = {p.User("main")}});
    const Importer read = Import(std::move(p));
    ASSERT_EQ(read.samples.size(), 1u) << comm;
    EXPECT_EQ(read.samples[0].thread, expected);
    EXPECT_THAT(read.samples[0].frames, ElementsAre("main"));
  }
}

}  // namespace
}  // namespace profd
