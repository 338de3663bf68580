// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/profile_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/base/unique_fd.h"
#include "tests/daemon/service/second.h"

namespace profd {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using testing::ElementsAre;

class ProfileFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "ksym-files-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { fs::remove_all(directory_); }

  ProfileFiles Open(uint64_t max_bytes = 1 << 20,
                    std::chrono::seconds max_age = hours(24 * 365)) {
    auto files = ProfileFiles::Open(directory_, {max_bytes, max_age});
    EXPECT_TRUE(files) << files.error().message();
    return std::move(*files);
  }
  // Paths below the directory, sorted.
  std::vector<std::string> Paths() const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
      if (entry.is_directory() && !fs::is_empty(entry.path())) continue;
      paths.push_back(fs::relative(entry.path(), directory_).string());
    }
    std::ranges::sort(paths);
    return paths;
  }
  void Put(const std::string& path, std::string_view text) const {
    fs::create_directories((fs::path(directory_) / path).parent_path());
    std::ofstream(fs::path(directory_) / path) << text;
  }

  std::string directory_;
  // The present, at a full second; its day's name.
  uint64_t now_ = static_cast<uint64_t>(::time(nullptr)) * kSecond;
};

// A time's name is its UTC date with milliseconds, and only such names are
// taken for one.
TEST(ProfileTimeNameTest, GoesBothWays) {
  constexpr uint64_t kTime = 1'795'295'105'123'000'000;
  const std::string name = ProfileTimeName(kTime);
  EXPECT_EQ(name, "20261121T210505.123Z");
  EXPECT_EQ(ParseProfileTimeName(name), kTime);
  EXPECT_EQ(ParseProfileTimeName("20260631T000000.000Z"), std::nullopt);
  EXPECT_EQ(ParseProfileTimeName("20260630T240000.000Z"), std::nullopt);
  EXPECT_EQ(ParseProfileTimeName("20260630T23000a.000Z"), std::nullopt);
  EXPECT_EQ(ParseProfileTimeName("20260630T230000.000"), std::nullopt);
  EXPECT_EQ(ParseProfileTimeName(""), std::nullopt);
}

// A profile is under year, month and day, with what was given in it.
TEST_F(ProfileFilesTest, WritesUnderTheDay) {
  ProfileFiles files = Open();
  const auto path = files.Write(now_, "folded", "a;b 1\n");
  ASSERT_TRUE(path) << path.error().message();
  const std::string name = ProfileTimeName(now_);
  const std::string relative = name.substr(0, 4) + "/" + name.substr(4, 2) +
                               "/" + name.substr(6, 2) + "/" + name + ".folded";
  EXPECT_THAT(Paths(), ElementsAre(relative));
  EXPECT_EQ(*path, directory_ + "/" + relative);
  EXPECT_EQ(ksym::ReadFile(*path, 100).value(), "a;b 1\n");
  EXPECT_EQ(files.total_bytes(), 6u);
}

// A profile never replaces another one, also when the clock was set back.
TEST_F(ProfileFilesTest, KeepsWhatHasTheSameTime) {
  ProfileFiles files = Open();
  const auto first = files.Write(now_, "json", "1");
  const auto second = files.Write(now_, "json", "2");
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  EXPECT_EQ(ksym::ReadFile(*first, 100).value(), "1");
  EXPECT_EQ(ksym::ReadFile(*second, 100).value(), "2");
  EXPECT_EQ(Open().total_files(), 2u);
}

// The oldest go when there are too many bytes; the newest stays even if it is
// too large alone.
TEST_F(ProfileFilesTest, KeepsWithinBytes) {
  ProfileFiles files = Open(100);
  for (int i = 4; i >= 0; --i) {
    ASSERT_TRUE(
        files.Write(now_ - i * kSecond, "folded", std::string(40, 'x')));
  }
  EXPECT_EQ(files.total_bytes(), 80u);
  EXPECT_EQ(files.total_files(), 2u);
  EXPECT_EQ(files.deleted_files(), 3u);
  const auto large =
      files.Write(now_ + kSecond, "folded", std::string(500, 'x'));
  ASSERT_TRUE(large);
  EXPECT_EQ(files.total_files(), 1u);
  EXPECT_EQ(Paths().size(), 1u);
  EXPECT_TRUE(fs::exists(*large));
}

// What is older than the limit goes when the directory is opened, with the
// directories that become empty; what is not ours stays.
TEST_F(ProfileFilesTest, DeletesByAgeAndOnlyOurs) {
  Put("2001/02/03/20010203T000000.000Z.pb.gz", "old");
  Put("2001/02/03/20010203T000010.000Z-1.json", "old");
  Put("2001/02/04/20010204T000000.000Z.folded.aBc123", "half");
  Put("2001/03/01/mine.txt", "mine");
  Put("notes", "mine");
  const ProfileFiles files = Open(1 << 20, hours(1));
  EXPECT_THAT(Paths(), ElementsAre("2001/03/01/mine.txt", "notes"));
  EXPECT_EQ(files.total_files(), 0u);
  EXPECT_EQ(files.deleted_files(), 2u);
}

// A restart counts what the last run has left.
TEST_F(ProfileFilesTest, CountsWhatIsThere) {
  ASSERT_TRUE(Open().Write(now_ - 2 * kSecond, "folded", "12345"));
  ASSERT_TRUE(Open().Write(now_, "folded", "123"));
  const ProfileFiles files = Open();
  EXPECT_EQ(files.total_files(), 2u);
  EXPECT_EQ(files.total_bytes(), 8u);
  EXPECT_EQ(Open(5).total_files(), 1u);
}

// A link is not followed, neither to be counted nor to be deleted through.
TEST_F(ProfileFilesTest, FollowsNoLinks) {
  Put("elsewhere/02/03/20010203T000000.000Z.json", "theirs");
  fs::create_directory_symlink(fs::path(directory_) / "elsewhere",
                               fs::path(directory_) / "2001");
  const ProfileFiles files = Open(1 << 20, hours(1));
  EXPECT_EQ(files.total_files(), 0u);
  EXPECT_TRUE(fs::exists(fs::path(directory_) /
                         "elsewhere/02/03/20010203T000000.000Z.json"));
}

// A write that fails is an error, leaves nothing, and the next one works.
TEST_F(ProfileFilesTest, FailureLeavesNothing) {
  ProfileFiles files = Open();
  const std::string year = ProfileTimeName(now_).substr(0, 4);
  Put(year, "in the way");
  EXPECT_FALSE(files.Write(now_, "folded", "a 1\n"));
  EXPECT_EQ(files.total_files(), 0u);
  fs::remove(fs::path(directory_) / year);
  EXPECT_TRUE(files.Write(now_, "folded", "a 1\n"));
  EXPECT_EQ(Paths().size(), 1u);
}

// What another service is writing in the same directory is not half written: it
// stays, and appears.
TEST_F(ProfileFilesTest, LeavesOthersTemporaryFilesAlone) {
  const std::string name = "2001/02/04/20010204T000000.000Z.folded";
  Put(name + ".aBc123", "half");
  Put(name + ".xYz456", "what is being written");
  const ksym::UniqueFd writing(::open(
      (directory_ + "/" + name + ".xYz456").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(writing.get(), LOCK_EX), 0);
  Open(1 << 20, std::chrono::years(100));
  EXPECT_THAT(Paths(), ElementsAre(name + ".xYz456"));
}

}  // namespace
}  // namespace profd
