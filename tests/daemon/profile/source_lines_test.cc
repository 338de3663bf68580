#include "daemon/profile/source_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/profile/kernel_debug.h"
#include "daemon/profile/line_builder.h"
#include "ksym/base/file.h"
#include "ksym/gsym/gsym_lookup.h"
#include "ksym/gsym/gsym_writer.h"
#include "ksym/gsym_cache.h"
#include "ksym/gsym_convert.h"
#include "ksym/process/process_image.h"

// Known to this program's symbol table.
extern "C" __attribute__((noinline)) int SourceLinesMarker(int value) {
  asm volatile("" : "+r"(value));
  return value + 1;
}

namespace profd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Clock = std::chrono::steady_clock;

uint64_t MarkerAddress() {
  return reinterpret_cast<uint64_t>(&SourceLinesMarker);
}

// A profile with one sample in this program, and a cache of its own.
class SourceLinesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "source_lines_XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    directory_ = path;
    const ksym::ProcessId self = {.pid = static_cast<uint32_t>(::getpid())};
    auto mappings = ksym::ReadMaps(self.pid);
    ASSERT_TRUE(mappings);
    const ksym::UserSymbol symbol = symbolizer_.Resolve(
        {.id = self, .mappings = std::move(*mappings)}, {MarkerAddress()});
    if (symbol.build_id.empty()) GTEST_SKIP() << "linked without build-id";
    ASSERT_EQ(symbol.name, "SourceLinesMarker");
    build_id_ = symbol.build_id;
    ProfileBuilder builder;
    const Frame marker = {.name = builder.Intern(symbol.name),
                          .module = builder.Intern(symbol.module),
                          .build_id = builder.Intern(symbol.build_id),
                          .file_offset = symbol.file_offset.value};
    const Frame caller = {.name = builder.Intern("caller")};
    const std::vector<FrameId> stack = {builder.AddFrame(marker),
                                        builder.AddFrame(caller)};
    builder.AddSample({.user_state = StackState::kWhole,
                       .user = builder.AddStack(stack),
                       .count = 3});
    profile_ = std::move(builder).Finish({});
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // What a conversion of this program could have given.
  void FillCache(std::string_view uuid) {
    const auto program = symbolizer_.OpenAgain(build_id_);
    ASSERT_TRUE(program) << program.error().message();
    const auto elf = ksym::ElfImage::Parse(program->source);
    ASSERT_TRUE(elf);
    const auto start =
        ksym::ToElfAddress(elf->segments(), {profile_.frames[0].file_offset});
    ASSERT_TRUE(start);
    ksym::FunctionBatch batch;
    batch.files = {{}, {"/src", "a.cc"}, {"/src", "b.h"}};
    batch.lines = {{start->value, 2, 7}};
    batch.ranges = {{start->value, start->value + 4}};
    batch.inlines = {{"_Z5innerv", 1, 1, 30, 0, 1}};
    batch.functions = {{.name = "SourceLinesMarker",
                        .range = {start->value, start->value + 4},
                        .line_count = 1,
                        .inline_count = 1}};
    ksym::GsymWriter writer;
    writer.Add(batch);
    const auto bytes = std::move(writer).Finish(
        uuid.empty() ? elf->build_id().substr(0, 20) : uuid);
    ASSERT_TRUE(bytes);
    auto cache = ksym::GsymCache::Open(directory_, 1 << 20);
    ASSERT_TRUE(cache);
    ASSERT_TRUE(cache->Store(build_id_, *bytes));
  }

  LineFiles Files(Clock::duration wait = std::chrono::minutes(1)) const {
    return {symbolizer_,
            {.cache_directory = directory_, .deadline = Clock::now() + wait}};
  }

  // "name file:line", leaf first; inlined ones with "*".
  std::vector<std::string> Frames() const {
    std::vector<std::string> texts;
    for (const FrameId id : profile_.Stack(profile_.samples[0].user)) {
      const Frame& frame = profile_.frames[id];
      texts.push_back(std::string(profile_.String(frame.name)) +
                      (frame.inlined ? "* " : " ") +
                      std::string(profile_.String(frame.file)) + ":" +
                      std::to_string(frame.line));
    }
    return texts;
  }

  static constexpr auto kInlines = SourceLineOptions::Inlines::kShow;
  static constexpr auto kLines = SourceLineOptions::Lines::kShow;

  ksym::Symbolizer symbolizer_{{}};
  std::string directory_;
  std::string build_id_;
  Profile profile_;
};

TEST_F(SourceLinesTest, InlinesAndLines) {
  FillCache({});
  LineFiles files = Files();
  const auto counts =
      AddSourceLines(files, {.inlines = kInlines, .lines = kLines}, profile_);
  EXPECT_THAT(Frames(),
              ElementsAre("inner()* /src/b.h:7",
                          "SourceLinesMarker /src/a.cc:30", "caller :0"));
  EXPECT_EQ(counts.found, 1u);
  EXPECT_EQ(counts.inlined, 1u);
  EXPECT_EQ(files.counts().from_cache, 1u);
  EXPECT_THAT(files.Warnings(), IsEmpty());
  EXPECT_EQ(profile_.samples[0].count, 3u);
}

// Without inlined frames a function has the line where its code is from.
TEST_F(SourceLinesTest, LinesAlone) {
  FillCache({});
  LineFiles files = Files();
  AddSourceLines(files, {.lines = kLines}, profile_);
  EXPECT_THAT(Frames(),
              ElementsAre("SourceLinesMarker /src/b.h:7", "caller :0"));
}

TEST_F(SourceLinesTest, InlinesAlone) {
  FillCache({});
  LineFiles files = Files();
  AddSourceLines(files,
                 {.inlines = kInlines,
                  .demangle = ksym::SymbolizerOptions::Demangle::kOff},
                 profile_);
  EXPECT_THAT(Frames(), ElementsAre("_Z5innerv* :0", "SourceLinesMarker :0",
                                    "caller :0"));
}

// When the time is up nothing is read; names are as they were.
TEST_F(SourceLinesTest, Deadline) {
  LineFiles files = Files(-std::chrono::seconds(1));
  AddSourceLines(files, {.inlines = kInlines, .lines = kLines}, profile_);
  EXPECT_THAT(Frames(), ElementsAre("SourceLinesMarker :0", "caller :0"));
  EXPECT_EQ(files.counts().late, 1u);
  EXPECT_THAT(files.Warnings(),
              ElementsAre(HasSubstr("--symbol-timeout was over")));
}

// With a builder nothing is waited for: there are no lines at first, and when
// its thread has made them they come from the cache.
TEST_F(SourceLinesTest, Builder) {
  LineBuilder builder({.cache_directory = directory_});
  LineFiles files(symbolizer_, {.cache_directory = directory_,
                                .deadline = Clock::time_point::max(),
                                .builder = &builder});
  AddSourceLines(files, {.lines = kLines}, profile_);
  EXPECT_THAT(Frames(), ElementsAre("SourceLinesMarker :0", "caller :0"));
  const auto deadline = Clock::now() + std::chrono::minutes(2);
  while (files.Find(build_id_, "this") == nullptr) {
    if (files.counts().without_debug_data > 0) {
      GTEST_SKIP() << "this program has no debug data";
    }
    ASSERT_EQ(files.counts().failed, 0u) << files.Warnings().front();
    ASSERT_LT(Clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(files.counts().converted, 1u);
  EXPECT_EQ(files.counts().from_cache, 1u);
  AddSourceLines(files, {.lines = kLines}, profile_);
  EXPECT_THAT(Frames(),
              ElementsAre(HasSubstr("source_lines_test.cc:"), "caller :0"));
}

// It gives up what it has begun, and says what it cannot make.
TEST_F(SourceLinesTest, BuilderGivesUp) {
  LineBuilder builder({.cache_directory = directory_, .max_file_bytes = 1000});
  for (int i = 0; i < 3; ++i) {
    auto program = symbolizer_.OpenAgain(build_id_);
    ASSERT_TRUE(program);
    EXPECT_TRUE(builder.Add(build_id_, "this", std::move(*program)));
  }
  std::vector<LineBuilder::Done> done;
  while (done.empty()) done = builder.TakeDone();
  EXPECT_EQ(done.front().outcome, LineBuilder::Outcome::kFailed);
  EXPECT_EQ(done.front().error, "too large");
  EXPECT_EQ(done.front().build_id, build_id_);
}

// Another program's file, one that is damaged, and one that others may write
// to are not used.
TEST_F(SourceLinesTest, DistrustsTheCache) {
  const std::string path = directory_ + "/" + build_id_ + ".1.gsym";
  const auto is_used = [&] {
    LineFiles files = Files(-std::chrono::seconds(1));
    files.Find(build_id_, "this");
    return files.counts().from_cache == 1;
  };
  FillCache("another");
  EXPECT_FALSE(is_used());
  FillCache({});
  EXPECT_TRUE(is_used());
  ASSERT_EQ(::chmod(path.c_str(), 0622), 0);
  EXPECT_FALSE(is_used());
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  const auto size = std::filesystem::file_size(path);
  for (const auto kept : {size - 1, size / 2, decltype(size){0}}) {
    std::filesystem::resize_file(path, kept);
    EXPECT_FALSE(is_used()) << kept;
  }
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/proc/self/exe", path);
  EXPECT_FALSE(is_used());
}

// A profile of a kernel that is loaded elsewhere than it is linked to.
class KernelLinesTest : public SourceLinesTest {
 protected:
  void SetUp() override {
    SourceLinesTest::SetUp();
    if (IsSkipped()) return;
    const auto kernel =
        FindKernelDebugFile("of-no-machine", {"/none", kImage}, "/none");
    ASSERT_TRUE(kernel) << kernel.error().message();
    EXPECT_EQ(kernel->text, 0xffffffff81000000);
    EXPECT_EQ(kernel->path, kImage);
    const auto made =
        ksym::ConvertElfToGsym(kernel->file.source, {kImage, nullptr}, {});
    ASSERT_TRUE(made);
    const auto file = ksym::GsymFile::Parse(made->bytes);
    ASSERT_TRUE(file);
    ksym::GsymAnswer answer;
    for (uint32_t i = 0; i < file->function_count(); ++i) {
      ASSERT_TRUE(ksym::LookupGsym(*file, file->FunctionStart(i), answer));
      if (answer.frames.back().function == "do_something") {
        offset_ = answer.start.value - kernel->text;
      }
    }
    ASSERT_NE(offset_, 0u);
  }

  void SetKernelFrame(std::string_view name) {
    ProfileBuilder builder;
    const std::vector<FrameId> stack = {
        builder.AddFrame({.name = builder.Intern(name),
                          .module = builder.Intern("[kernel]"),
                          .kind = FrameKind::kKernel,
                          .file_offset = offset_})};
    builder.AddSample({.kernel_state = StackState::kWhole,
                       .kernel = builder.AddStack(stack),
                       .count = 1});
    CaptureMetadata metadata;
    metadata.kernel_release = "of-no-machine";
    profile_ = std::move(builder).Finish(metadata);
  }

  std::vector<std::string> KernelFrames(std::vector<std::string> paths) {
    LineFiles files(symbolizer_,
                    {.cache_directory = directory_,
                     .deadline = Clock::now() + std::chrono::minutes(1),
                     .kernel_paths = std::move(paths)});
    AddSourceLines(files, {.inlines = kInlines, .lines = kLines}, profile_);
    warnings_ = files.Warnings();
    std::vector<std::string> texts;
    for (const FrameId id : profile_.Stack(profile_.samples[0].kernel)) {
      const Frame& frame = profile_.frames[id];
      const std::string_view path = profile_.String(frame.file);
      texts.push_back(std::string(profile_.String(frame.name)) + " " +
                      std::string(path.substr(path.rfind('/') + 1)) + ":" +
                      std::to_string(frame.line));
    }
    return texts;
  }

  static constexpr const char* kImage = KSYM_FAKE_KERNEL;
  uint64_t offset_ = 0;
  std::vector<std::string> warnings_;
};

TEST_F(KernelLinesTest, InlinesAndLines) {
  SetKernelFrame("do_something");
  EXPECT_THAT(
      KernelFrames({"/none", kImage}),
      ElementsAre("inner fake_kernel.c:12", "do_something fake_kernel.c:16"));
  EXPECT_THAT(warnings_, IsEmpty());
}

// The kernel's image is made use of when its builder has made it.
TEST_F(KernelLinesTest, Builder) {
  LineBuilder builder({.cache_directory = directory_});
  LineFiles files(symbolizer_, {.cache_directory = directory_,
                                .deadline = Clock::time_point::max(),
                                .kernel_paths = {kImage},
                                .builder = &builder});
  EXPECT_EQ(files.FindKernel("of-no-machine"), nullptr);
  const auto deadline = Clock::now() + std::chrono::minutes(1);
  const LineFile* kernel = nullptr;
  while (kernel == nullptr && Clock::now() < deadline) {
    kernel = files.FindKernel("of-no-machine");
  }
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->kernel_text, 0xffffffff81000000);
}

// Where the image has another function it is of another build.
TEST_F(KernelLinesTest, AnotherBuild) {
  SetKernelFrame("do_another_thing");
  EXPECT_THAT(KernelFrames({kImage}), ElementsAre("do_another_thing :0"));
}

TEST_F(KernelLinesTest, NoImage) {
  SetKernelFrame("do_something");
  EXPECT_THAT(KernelFrames({"/none"}), ElementsAre("do_something :0"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("[kernel]")));
}

// The running kernel tells its build-id, and only an image that has it serves.
TEST_F(KernelLinesTest, BuildIdOfTheRunningKernel) {
  utsname name = {};
  ASSERT_EQ(::uname(&name), 0);
  const auto kernel = FindKernelDebugFile("of-no-machine", {kImage}, "/none");
  ASSERT_TRUE(kernel);
  const std::string notes_path = directory_ + "/notes";
  const auto find = [&](const std::string& build_id_bytes) {
    std::string notes("\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0", 16);
    notes += build_id_bytes;
    std::ofstream(notes_path) << notes;
    return FindKernelDebugFile(name.release, {kImage}, notes_path);
  };
  const auto other = find(std::string(20, 'x'));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), ksym::ErrorCode::kInvalid);
  const auto image = ksym::ElfImage::Parse(kernel->file.source);
  ASSERT_TRUE(image);
  EXPECT_TRUE(find(image->build_id()));
}

}  // namespace
}  // namespace profd
