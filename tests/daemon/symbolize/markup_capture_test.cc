// SPDX-License-Identifier: Apache-2.0
// Kernel addresses of a capture that was written as a log with markup, named
// by the filter on a machine that never ran that kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/output/markup.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/linker_symbols.h"
#include "ksym/gsym_convert.h"
#include "ksym/markup/markup_filter.h"
#include "ksym/process/mapped_file.h"
#include "ksym/tools/markup_names.h"
#include "tests/ksym/kernel/kernel_tables.h"

namespace profd {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kBuildId = "00112233445566778899aabbccddeeff00112233";

class Strings : public ksym::MarkupOutput {
 public:
  void WriteLog(std::string_view text) override { log += text; }
  void WriteReport(std::string_view text) override { report += text; }

  std::string log;
  std::string report;
};

// The log, and the errors.
struct Filtered {
  std::string log;
  std::string report;
};

Filtered Filter(const std::string& log, ksym::MarkupNamesOptions options) {
  ksym::MarkupNames names(std::move(options));
  Strings out;
  ksym::MarkupFilter filter({}, names, out);
  filter.Push(log);
  filter.Finish();
  return {out.log, out.report};
}

Filtered FilterWithListing(const std::string& log, const std::string& path) {
  ksym::MarkupNamesOptions options;
  options.kernel_symbols = path;
  return Filter(log, std::move(options));
}

RawCapture CaptureOf(std::vector<uint64_t> frames,
                     std::vector<KernelPart> parts) {
  RawCapture capture;
  capture.profile.stacks.Add(kFirstStackId, RawStack{std::move(frames)});
  capture.profile.samples.push_back({.process = {.pid = 7},
                                     .comm = Comm("app"),
                                     .kernel_stack = kFirstStackId,
                                     .count = 3});
  capture.kernel_parts = std::move(parts);
  return capture;
}

std::string LogOf(const RawCapture& capture,
                  OutputOptions::By by = OutputOptions::By::kComm) {
  std::string log;
  OutputBuffer out([&log](std::string_view piece) {
    log += piece;
    return ksym::Status();
  });
  WriteMarkup(capture, 0, by, out);
  EXPECT_TRUE(out.Finish());
  return log;
}

std::vector<std::string> FramesIn(const std::string& log) {
  std::vector<std::string> frames;
  std::istringstream in(log);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("  ")) frames.push_back(line);
  }
  return frames;
}

// A recorded kernel: its listing in a file, its parts where they were, and of
// the kernel and of each module the first, the middle and the last function,
// at their last bytes, as return addresses are.
class RecordedKernel {
 public:
  RecordedKernel() : path_(testing::TempDir() + "/markup_capture_kallsyms") {
    const std::string table = ksym_test::DebianTable();
    std::ofstream(path_, std::ios::binary) << table;
    std::map<std::string, std::vector<ksym_test::ReferenceRange>> functions;
    for (const auto& range :
         ksym_test::ReferenceRanges(ksym_test::SortedSymbols(table))) {
      const std::string& module = range.symbol.module;
      if (!range.answers || range.in_prefix || module == "bpf") continue;
      functions[module].push_back(range);
    }
    for (const auto& [module, ranges] : functions) AddPart(module, ranges);
  }
  ~RecordedKernel() { std::filesystem::remove(path_); }

  const std::string& path() const { return path_; }
  const std::vector<KernelPart>& parts() const { return parts_; }
  const std::vector<uint64_t>& frames() const { return frames_; }
  // "name <invalid>:0:0 (module+" of each frame.
  const std::vector<std::string>& names() const { return names_; }

 private:
  void AddPart(const std::string& module,
               const std::vector<ksym_test::ReferenceRange>& ranges) {
    constexpr uint64_t kPage = 4096;
    const bool is_image = module.empty();
    const uint64_t start = ranges.front().start / kPage * kPage;
    const std::string name = is_image ? "[kernel]" : module;
    parts_.push_back({name, kBuildId, start, ranges.back().end - start});
    for (const size_t i :
         std::set<size_t>{0, ranges.size() / 2, ranges.size() - 1}) {
      frames_.push_back(ranges[i].end - (frames_.empty() ? 1 : 0));
      names_.push_back(ranges[i].symbol.name + " <invalid>:0:0 (" + name +
                       "+0x");
    }
  }

  std::string path_;
  std::vector<KernelPart> parts_;
  std::vector<uint64_t> frames_;
  std::vector<std::string> names_;
};

// Addresses of the kernel and of 70 modules and more have the names of the
// listing.
TEST(MarkupCaptureTest, KernelAndModulesByAListing) {
  const RecordedKernel kernel;
  ASSERT_GE(kernel.parts().size(), 70u);
  const std::string log = LogOf(CaptureOf(kernel.frames(), kernel.parts()));
  const Filtered named = FilterWithListing(log, kernel.path());
  EXPECT_EQ(named.report, "");
  const std::vector<std::string> frames = FramesIn(named.log);
  ASSERT_EQ(frames.size(), kernel.names().size());
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_THAT(frames[i], HasSubstr(' ' + kernel.names()[i]));
  }
}

// The listing of another boot names nothing, and says so once per region.
TEST(MarkupCaptureTest, AnotherBootHasNoNames) {
  const RecordedKernel kernel;
  std::vector<KernelPart> parts = kernel.parts();
  std::vector<uint64_t> frames = kernel.frames();
  constexpr uint64_t kShift = 0x200000;
  for (KernelPart& part : parts) part.start += kShift;
  for (uint64_t& frame : frames) frame += kShift;
  const Filtered named =
      FilterWithListing(LogOf(CaptureOf(frames, parts)), kernel.path());
  for (const std::string& name : kernel.names()) {
    EXPECT_THAT(named.log, Not(HasSubstr(' ' + name)));
  }
  EXPECT_THAT(named.report, HasSubstr("another boot"));
  EXPECT_LE(std::ranges::count(named.report, '\n'), 74);
}

// Equal stacks of threads are one, also where the capture tells these apart,
// unless they are asked for by thread.
TEST(MarkupCaptureTest, ThreadsAreApartWhereAskedFor) {
  RawCapture capture = CaptureOf({0xffffffff81000000}, {});
  RawSample& first = capture.profile.samples.front();
  first.tid = 8;
  RawSample second = first;
  second.tid = 9;
  second.count = 4;
  capture.profile.samples.push_back(second);
  const std::string together = LogOf(capture);
  EXPECT_THAT(together, HasSubstr("\n7 samples in app\n"));
  EXPECT_THAT(together, Not(HasSubstr("thread")));
  const std::string apart = LogOf(capture, OutputOptions::By::kTid);
  EXPECT_THAT(apart, HasSubstr("\n3 samples in app, thread 8\n"));
  EXPECT_THAT(apart, HasSubstr("\n4 samples in app, thread 9\n"));
}

class KernelImageTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/markup_capture_test";
    std::filesystem::create_directories(directory_ + "/.build-id");
    auto opened = ksym::OpenFileOfHost(KSYM_FAKE_KERNEL);
    ASSERT_TRUE(opened);
    const auto symbols = ksym::LinkerSymbols::Load(
        ksym::ByteSource::OfFile(std::move(opened->fd), opened->size));
    ASSERT_TRUE(symbols);
    build_id_ = symbols->build_id();
    ASSERT_TRUE(symbols->kernel_text());
    text_ = symbols->kernel_text()->value;
    // Behind the 64 bytes of padding.
    for (uint64_t at = text_; at < text_ + 4096 && function_ == 0; ++at) {
      const auto symbol = symbols->Find({at});
      if (symbol && symbol->name == "do_something") function_ = at;
    }
    ASSERT_NE(function_, 0u);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Install(const std::string& path, const std::string& build_id) {
    const std::string target =
        directory_ + "/.build-id/" + build_id.substr(0, 2);
    std::filesystem::create_directories(target);
    std::filesystem::copy_file(path,
                               target + '/' + build_id.substr(2) + ".debug");
  }
  Filtered Named(const RawCapture& capture) {
    ksym::MarkupNamesOptions options;
    options.places.debug_directories = {directory_};
    return Filter(LogOf(capture), std::move(options));
  }

  std::string directory_;
  std::string build_id_;
  uint64_t text_ = 0;
  uint64_t function_ = 0;
};

// By its debug file the kernel has names and lines, wherever it was loaded.
TEST_F(KernelImageTest, WhereverItWasLoaded) {
  Install(KSYM_FAKE_KERNEL, build_id_);
  for (const uint64_t shift : {uint64_t{0}, uint64_t{0x12600000}}) {
    const Filtered named = Named(CaptureOf(
        {function_ + shift}, {{"[kernel]", build_id_, text_ + shift, 0x1000}}));
    EXPECT_EQ(named.report, "");
    EXPECT_THAT(FramesIn(named.log),
                Contains(ContainsRegex("do_something .*fake_kernel.c:1[0-9]:"
                                       ".*\\(\\[kernel\\]\\+0x")))
        << named.log;
  }
}

// A module's file counts the addresses of its sections, which the log does not
// tell; so it has no wrong names, and the message has the cure.
TEST_F(KernelImageTest, AModulesFileNamesNothing) {
  Install(KSYM_FAKE_MODULE, kBuildId);
  const Filtered named = Named(CaptureOf(
      {0xffffffffc0001050}, {{"ext4", kBuildId, 0xffffffffc0001000, 0x1000}}));
  EXPECT_THAT(FramesIn(named.log), IsEmpty());
  EXPECT_THAT(named.log, HasSubstr("[[[bt:0:0xffffffffc0001050:pc]]]"));
  EXPECT_THAT(named.report, HasSubstr("--kernel-symbols is needed"));
}

// Nor does a GSYM file that was made of one.
TEST_F(KernelImageTest, AModulesGsymFileNamesNothing) {
  auto opened = ksym::OpenFileOfHost(KSYM_FAKE_MODULE);
  ASSERT_TRUE(opened);
  const auto made = ksym::ConvertElfToGsym(
      ksym::ByteSource::OfFile(std::move(opened->fd), opened->size), {}, {});
  ASSERT_TRUE(made);
  std::ofstream(directory_ + '/' + kBuildId + ".gsym", std::ios::binary)
      .write(reinterpret_cast<const char*>(made->bytes.data()),
             static_cast<std::streamsize>(made->bytes.size()));
  ksym::MarkupNamesOptions options;
  options.places = {.debug_directories = {directory_},
                    .gsym_directories = {directory_}};
  const Filtered named =
      Filter(LogOf(CaptureOf({0xffffffffc0001050},
                             {{"ext4", kBuildId, 0xffffffffc0001000, 0x1000}})),
             std::move(options));
  EXPECT_THAT(FramesIn(named.log), IsEmpty());
  EXPECT_THAT(named.report, HasSubstr("--kernel-symbols is needed"));
}

}  // namespace
}  // namespace profd
