// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/naming/source_lines_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/naming/line_builder.h"

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

// It makes nothing of a file that others may write to, which counts once, and
// is asked again when there is one that they may not.
TEST_F(SourceLinesTest, BuilderWaitsForATrustedFile) {
  const std::string path = directory_ + "/program";
  std::filesystem::copy_file("/proc/self/exe", path);
  ASSERT_EQ(::chmod(path.c_str(), 0757), 0);
  struct stat status = {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  auto mappings = ksym::ReadMaps(static_cast<uint32_t>(::getpid()));
  ASSERT_TRUE(mappings);
  const ksym::ProcessImage own = {.id = {}, .mappings = std::move(*mappings)};
  ksym::Mapping mapping = *own.Find({MarkerAddress()});
  mapping.path = path;
  mapping.device_major = major(status.st_dev);
  mapping.device_minor = minor(status.st_dev);
  mapping.inode = status.st_ino;
  ksym::Symbolizer symbolizer(
      {.files = ksym::SymbolizerOptions::Files::kOfHost});
  ASSERT_EQ(
      symbolizer.Resolve({.id = {}, .mappings = {mapping}}, {MarkerAddress()})
          .build_id,
      build_id_);
  LineBuilder builder({.cache_directory = directory_});
  LineFiles files(symbolizer, {.cache_directory = directory_,
                               .deadline = Clock::now(),
                               .builder = &builder});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(files.Find(build_id_, path), nullptr);
  EXPECT_EQ(files.counts().untrusted, 1u);
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  const auto deadline = Clock::now() + std::chrono::minutes(1);
  while (files.Find(build_id_, path) == nullptr) {
    if (files.counts().without_debug_data > 0) {
      GTEST_SKIP() << "this program has no debug data";
    }
    ASSERT_LT(Clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(files.counts().converted, 1u);
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

}  // namespace
}  // namespace profd
