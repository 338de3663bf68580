// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace profd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ParsedCommandLine Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "ksym-profile");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

ProfileOptions ParseOk(const std::vector<const char*>& arguments) {
  const ParsedCommandLine parsed = Parse(arguments);
  EXPECT_TRUE(parsed.options) << parsed.error_text;
  return parsed.options.value_or(ProfileOptions{});
}

// Without arguments: the whole machine at 99 Hz until Ctrl-C, folded.
TEST(OptionsTest, HasTheDocumentedDefaults) {
  const ProfileOptions options = ParseOk({});
  EXPECT_EQ(options.capture.rate.frequency_hz, 99u);
  EXPECT_EQ(options.capture.rate.count_period, 0u);
  EXPECT_FALSE(options.duration);
  EXPECT_EQ(options.format, OutputFormat::kFolded);
  EXPECT_EQ(options.output.by, OutputOptions::By::kComm);
  EXPECT_EQ(options.capture.bpf.max_stack_depth, 127u);
  EXPECT_FALSE(options.capture.store);
  EXPECT_TRUE(options.demangle);
}

// Rate, filters and storage arrive where the capture reads them.
TEST(OptionsTest, ReadsSamplingOptions) {
  const ProfileOptions options =
      ParseOk({"-F", "999", "-e", "task-clock", "-p", "7,5,7", "-C", "0-1",
               "-U", "--stack-map=stackid", "--max-stack-depth", "512",
               "--hash-storage-size=100", "--stack-storage-size=200", "2.5"});
  EXPECT_EQ(options.capture.rate.frequency_hz, 999u);
  EXPECT_EQ(options.capture.event, "task-clock");
  EXPECT_THAT(options.capture.bpf.pids, ElementsAre(5, 7));
  EXPECT_THAT(*options.capture.cpus, ElementsAre(0, 1));
  EXPECT_FALSE(options.capture.bpf.kernel_stacks);
  EXPECT_TRUE(options.capture.bpf.user_stacks);
  EXPECT_EQ(options.capture.store, StackStore::kStackId);
  EXPECT_EQ(options.capture.bpf.max_stack_depth, 512u);
  EXPECT_EQ(options.capture.bpf.count_entries, 100u);
  EXPECT_EQ(options.capture.bpf.stack_entries, 200u);
  EXPECT_DOUBLE_EQ(options.duration->count(), 2.5);
}

// A duration may have a unit.
TEST(OptionsTest, ReadsDurations) {
  const auto seconds = [](const char* text) {
    return ParseOk({text}).duration->count();
  };
  EXPECT_DOUBLE_EQ(seconds("10s"), 10);
  EXPECT_DOUBLE_EQ(seconds("0.5"), 0.5);
  EXPECT_DOUBLE_EQ(seconds("2m"), 120);
  EXPECT_DOUBLE_EQ(seconds("1.5h"), 5400);
  for (const char* bad : {"s", "10x", "10ms", "10s ", "0s", "-1m", "1e9h"}) {
    EXPECT_EQ(Parse({bad}).exit_status, 2) << bad;
  }
}

// A table may take the place of folded stacks where neither a file nor a format
// was given; --open needs a file.
TEST(OptionsTest, KnowsWhatWasLeftOpen) {
  EXPECT_TRUE(ParseOk({}).is_format_open);
  EXPECT_TRUE(ParseOk({"--by", "pid"}).is_format_open);
  EXPECT_FALSE(ParseOk({"-f"}).is_format_open);
  EXPECT_FALSE(ParseOk({"-o", "-"}).is_format_open);
  EXPECT_FALSE(ParseOk({"--format", "folded"}).is_format_open);
  EXPECT_FALSE(ParseOk({"-o", "x.json"}).is_format_open);
  EXPECT_TRUE(ParseOk({"--open", "-o", "x.html"}).open);
  EXPECT_EQ(Parse({"--open"}).exit_status, 2);
  EXPECT_EQ(Parse({"--open", "-o", "-"}).exit_status, 2);
}

// -c replaces the frequency.
TEST(OptionsTest, CountsEventsInsteadOfTime) {
  const ProfileOptions options = ParseOk({"-c", "1000000"});
  EXPECT_EQ(options.capture.rate.frequency_hz, 0u);
  EXPECT_EQ(options.capture.rate.count_period, 1000000u);
}

// The format follows --format, then -f, then the file's extension.
TEST(OptionsTest, ChoosesTheFormat) {
  EXPECT_EQ(ParseOk({"-o", "x.json"}).format, OutputFormat::kJson);
  EXPECT_EQ(ParseOk({"-o", "x.txt"}).format, OutputFormat::kText);
  EXPECT_EQ(ParseOk({"-o", "a.b/x"}).format, OutputFormat::kFolded);
  EXPECT_EQ(ParseOk({"-o", "x.gif", "-f"}).format, OutputFormat::kFolded);
  EXPECT_EQ(ParseOk({"-o", "x.json", "-f"}).format, OutputFormat::kFolded);
  EXPECT_EQ(ParseOk({"-o", "x.json", "--format", "text"}).format,
            OutputFormat::kText);
}

// Where names come from is bounded in time and memory.
TEST(OptionsTest, BoundsSymbols) {
  const ProfileOptions plain = ParseOk({});
  EXPECT_FALSE(plain.debuginfod);
  EXPECT_FALSE(plain.inlines);
  EXPECT_FALSE(plain.lines);
  const ProfileOptions lines =
      ParseOk({"--lines", "--inlines", "--symbol-timeout", "5"});
  EXPECT_TRUE(lines.inlines);
  EXPECT_TRUE(lines.lines);
  EXPECT_EQ(lines.symbol_timeout, std::chrono::seconds(5));
  EXPECT_EQ(plain.symbol_cache_bytes, uint64_t{256} << 20);
  const ProfileOptions options = ParseOk(
      {"--debuginfod", "--symbol-timeout", "0.25", "--symbol-cache", "1"});
  EXPECT_TRUE(options.debuginfod);
  EXPECT_EQ(options.symbol_timeout, std::chrono::milliseconds(250));
  EXPECT_EQ(options.symbol_cache_bytes, uint64_t{1} << 20);
}

// Everything after "--" is the command, options included.
TEST(OptionsTest, TakesACommand) {
  const ProfileOptions options =
      ParseOk({"-F", "49", "--", "ls", "-F", "--", "x"});
  EXPECT_THAT(options.command, ElementsAre("ls", "-F", "--", "x"));
  EXPECT_EQ(options.capture.rate.frequency_hz, 49u);
}

// Thousands of process ids are not too many.
TEST(OptionsTest, TakesManyPids) {
  std::string list = "1";
  for (int pid = 2; pid <= 5000; ++pid) list += "," + std::to_string(pid);
  EXPECT_EQ(ParseOk({"-p", list.c_str()}).capture.bpf.pids.size(), 5000u);
}

// --by tid makes the kernel side tell threads apart.
TEST(OptionsTest, ByThreadSamplesThreads) {
  EXPECT_TRUE(ParseOk({"--by", "tid"}).capture.bpf.per_thread);
  EXPECT_FALSE(ParseOk({"--by", "pid"}).capture.bpf.per_thread);
}

// So does what finds the threads that are parked.
TEST(OptionsTest, WaitsAreThoseOfThreads) {
  EXPECT_TRUE(ParseOk({"--off-cpu"}).capture.bpf.per_thread);
  EXPECT_TRUE(ParseOk({"--wall"}).capture.bpf.per_thread);
  EXPECT_TRUE(ParseOk({"--wall", "--format", "markup"}).capture.bpf.per_thread);
  EXPECT_FALSE(ParseOk({"--wall"}).parked);
  EXPECT_TRUE(ParseOk({"--wall", "--parked"}).parked);
  EXPECT_TRUE(ParseOk({"--replay", "f", "--parked"}).parked);
}

struct BadCase {
  std::vector<const char*> arguments;
  const char* mention;
};

// A contradiction or a bad value is one line that names it, and status 2.
TEST(OptionsTest, RefusesBadUsageInOneLine) {
  const std::vector<BadCase> cases = {
      {{"-F", "0"}, "-F"},
      {{"-F", "-1"}, "-F"},
      {{"-F", "x"}, "frequency"},
      {{"-c", "0"}, "-c"},
      {{"-F", "99", "-c", "5"}, "contradict"},
      {{"-p", "1", "-L", "2"}, "contradict"},
      {{"-p", "0"}, "-p"},
      {{"--parked"}, "--off-cpu"},
      {{"-p", "1,,2"}, "-p"},
      {{"-p", "1,"}, "-p"},
      {{"-p", ""}, "pid"},
      {{"-p", "99999999"}, "-p"},
      {{"-C", "3-1"}, "'3-1'"},
      {{"-C", "x"}, "'x'"},
      {{"-U", "-K"}, "contradict"},
      {{"-e", "no-such-event"}, "no-such-event"},
      {{"-e", "rxyz"}, "rxyz"},
      {{"--max-stack-depth", "0"}, "max-stack-depth"},
      {{"--max-stack-depth", "513"}, "512"},
      {{"--stack-map", "x"}, "stack-map"},
      {{"--stack-map", "x\ny\033[31m"}, "x?y?[31m"},
      {{"--stack-storage-size", "0"}, "stack-storage-size"},
      {{"--hash-storage-size", "99999999999"}, "hash-storage-size"},
      {{"--symbol-cache", "0"}, "symbol-cache"},
      {{"--symbol-cache", "-1"}, "symbol-cache"},
      {{"--symbol-cache", "99999999999"}, "symbol-cache"},
      {{"--symbol-timeout", "5"}, "needs --debuginfod"},
      {{"--debuginfod", "--symbol-timeout", "0"}, "symbol-timeout"},
      {{"--debuginfod", "--symbol-timeout", "nan"}, "symbol-timeout"},
      {{"--debuginfod", "--symbol-timeout", "3601"}, "3600"},
      {{"--by", "x"}, "--by"},
      {{"-o", "x.gif"}, "x.gif"},
      {{"-o", ""}, "empty"},
      {{"--raw", ""}, "empty"},
      {{"--format", "x"}, "--format"},
      {{"-f", "--format", "json"}, "contradict"},
      {{"-q", "-v"}, "contradict"},
      {{"-I", "-p", "1"}, "contradict"},
      {{"--off-cpu", "--wall"}, "contradict"},
      {{"--off-cpu", "-c", "9"}, "contradict"},
      {{"--wall", "-e", "cycles"}, "contradict"},
      {{"--wall", "-C", "0"}, "contradict"},
      {{"--off-cpu", "--stack-map", "stackid"}, "contradict"},
      {{"--off-cpu", "-F", "1000000001"}, "-F"},
      {{"0"}, "DURATION"},
      {{"-5"}, "-5"},
      {{"nan"}, "DURATION"},
      {{"1e99"}, "DURATION"},
      {{"10x"}, "DURATION"},
      {{"1", "2"}, "2"},
      {{"--"}, "COMMAND"},
      {{"5", "--", "ls"}, "contradict"},
      {{"-p", "1", "--", "ls"}, "contradict"},
      {{"--replay", "f", "-F", "9"}, "contradict"},
      {{"--replay", "f", "--", "ls"}, "contradict"},
      {{"--no-such-option"}, "no-such-option"}};
  for (const BadCase& bad : cases) {
    const ParsedCommandLine parsed = Parse(bad.arguments);
    const std::string what = testing::PrintToString(bad.arguments);
    EXPECT_FALSE(parsed.options) << what;
    EXPECT_EQ(parsed.exit_status, 2) << what;
    EXPECT_THAT(parsed.error_text, HasSubstr(bad.mention)) << what;
    EXPECT_EQ(std::ranges::count(parsed.error_text, '\n'), 0) << what;
    EXPECT_THAT(parsed.output_text, IsEmpty()) << what;
  }
}

// Samples of waits, with as many points in a second as the CPU has samples.
TEST(OptionsTest, ChoosesWhatIsSampled) {
  const ParsedCommandLine cpu = Parse({"1"});
  ASSERT_TRUE(cpu.options);
  EXPECT_TRUE(cpu.options->capture.bpf.cpu_samples);
  EXPECT_FALSE(cpu.options->capture.bpf.waits);
  const ParsedCommandLine waits = Parse({"--off-cpu", "-F", "1000", "1"});
  ASSERT_TRUE(waits.options);
  EXPECT_FALSE(waits.options->capture.bpf.cpu_samples);
  ASSERT_TRUE(waits.options->capture.bpf.waits);
  EXPECT_EQ(waits.options->capture.bpf.waits->frequency_hz, 1'000u);
  const ParsedCommandLine wall = Parse({"--wall", "1"});
  ASSERT_TRUE(wall.options);
  EXPECT_TRUE(wall.options->capture.bpf.cpu_samples);
  EXPECT_TRUE(wall.options->capture.bpf.waits);
}

// Help and version are data on stdout with status 0.
TEST(OptionsTest, PrintsHelpAndVersion) {
  const ParsedCommandLine help = Parse({"--help"});
  EXPECT_EQ(help.exit_status, 0);
  EXPECT_THAT(help.output_text, HasSubstr("-- COMMAND"));
  EXPECT_THAT(help.output_text, HasSubstr("--stack-storage-size"));
  const ParsedCommandLine version = Parse({"--version"});
  EXPECT_EQ(version.exit_status, 0);
  EXPECT_EQ(version.output_text, "ksym-profile " KSYM_VERSION "\n");
}

}  // namespace
}  // namespace profd
