// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/report_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace profd {
namespace {

namespace fs = std::filesystem;

class ReportFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "report_file_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string Path(const char* name) const { return directory_ / name; }
  size_t FilesInDirectory() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(directory_),
                                             fs::directory_iterator()));
  }

  fs::path directory_;
};

ksym::Status WriteWhole(ksym::Result<ReportFile>&& file,
                        std::string_view bytes) {
  if (!file) return ksym::Fail(file.error());
  const ksym::Status written = file->Append(bytes);
  return written ? file->Commit() : written;
}

std::string Content(const std::string& path) {
  return ksym::ReadFile(path, 1 << 20).value_or("(unreadable)");
}

// Until it is written, the old file is what others see; nothing is left over.
TEST_F(ReportFileTest, ReplacesAFileAsAWhole) {
  const std::string path = Path("out");
  ASSERT_TRUE(WriteWhole(ReportFile::Open(path), "old"));
  {
    auto file = ReportFile::Open(path);
    ASSERT_TRUE(file);
    EXPECT_EQ(Content(path), "old");
    ASSERT_TRUE(WriteWhole(std::move(file), "new"));
  }
  EXPECT_EQ(Content(path), "new");
  EXPECT_EQ(FilesInDirectory(), 1u);
}

// A capture that fails leaves neither a file nor a temporary one.
TEST_F(ReportFileTest, LeavesNothingWhenNothingIsWritten) {
  ASSERT_TRUE(ReportFile::Open(Path("out")));
  EXPECT_EQ(FilesInDirectory(), 0u);
}

// A device must never be replaced by a file.
TEST_F(ReportFileTest, WritesToADeviceInPlace) {
  auto file = ReportFile::Open("/dev/null");
  ASSERT_TRUE(file);
  EXPECT_TRUE(WriteWhole(std::move(file), "text"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

// A link stays a link, and its target gets the text.
TEST_F(ReportFileTest, FollowsASymbolicLink) {
  ASSERT_TRUE(WriteWhole(ReportFile::Open(Path("target")), "old"));
  fs::create_symlink("target", Path("link"));
  ASSERT_TRUE(WriteWhole(ReportFile::Open(Path("link")), "new"));
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Content(Path("target")), "new");
}

// A link to a file that is not there yet makes that file.
TEST_F(ReportFileTest, FollowsADanglingLink) {
  fs::create_symlink("target", Path("link"));
  ASSERT_TRUE(WriteWhole(ReportFile::Open(Path("link")), "new"));
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Content(Path("target")), "new");
}

// A file that only its owner may read stays one.
TEST_F(ReportFileTest, KeepsTheMode) {
  ASSERT_TRUE(WriteWhole(ReportFile::Open(Path("out")), "old"));
  ASSERT_EQ(::chmod(Path("out").c_str(), 0600), 0);
  ASSERT_TRUE(WriteWhole(ReportFile::Open(Path("out")), "new"));
  struct stat status = {};
  ASSERT_EQ(::stat(Path("out").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

// A FIFO gets the text and stays a FIFO.
TEST_F(ReportFileTest, WritesToAFifo) {
  const std::string path = Path("fifo");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] {
    std::ifstream in(path);  // blocks until there is a writer
    std::getline(in, got);
  });
  auto file = ReportFile::Open(path);
  ASSERT_TRUE(file);
  EXPECT_TRUE(WriteWhole(std::move(file), "text\n"));
  reader.join();
  EXPECT_EQ(got, "text");
  EXPECT_TRUE(fs::is_fifo(path));
}

// A path that cannot be written is an error before any capture.
TEST_F(ReportFileTest, FailsEarly) {
  EXPECT_FALSE(ReportFile::Open(Path("no/such/directory/out")));
  EXPECT_FALSE(ReportFile::Open(directory_));
}

}  // namespace
}  // namespace profd
