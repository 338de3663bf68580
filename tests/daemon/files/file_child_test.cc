// SPDX-License-Identifier: Apache-2.0
#include "daemon/files/file_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/elf/byte_source.h"

namespace profd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = FileChild::Clock;
using Kind = FileRequest::Kind;

// Devices of files that behave in ways of their own; all others are opened.
constexpr uint32_t kSilent = 77;
constexpr uint32_t kSlow = 78;
constexpr uint32_t kDying = 79;
constexpr milliseconds kSlowTime(300);
// Enough for a request that is to be answered, on a machine under any load.
constexpr seconds kEnough(20);

// Stands for file systems, in the child's workers.
class OddOpener final : public ksym::FileOpener {
 public:
  ksym::Result<ksym::OpenedFile> Hold(uint32_t pid,
                                      const ksym::Mapping& mapping) override {
    if (mapping.device_major == kSilent) {
      for (;;) ::pause();
    }
    if (mapping.device_major == kSlow) {
      ::usleep(std::chrono::microseconds(kSlowTime).count());
    }
    if (mapping.device_major == kDying) ::_exit(1);
    return OpenPath(pid, mapping.path, ksym::Links::kFollowInside);
  }
  ksym::Result<ksym::OpenedFile> HoldOfHost(
      const ksym::Mapping& mapping) override {
    return ksym::HoldHostFile(mapping);
  }
  ksym::Status Open(ksym::OpenedFile& file) override {
    return ksym::OpenHeld(file);
  }
  ksym::Result<ksym::OpenedFile> OpenPath(uint32_t, const std::string& path,
                                          ksym::Links links) override {
    return ksym::OpenFileOfHost(path, links);
  }
};

class FileChildTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = ::testing::TempDir() + "file_child_XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    directory_ = path;
    Write("file", "some bytes");
    auto child = FileChild::Start(std::make_shared<OddOpener>());
    ASSERT_TRUE(child) << child.error().message();
    child_ = std::move(*child);
  }
  void TearDown() override {
    child_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(PathOf(name)) << bytes;
  }
  std::string PathOf(const std::string& name) const {
    return (directory_ / name).string();
  }

  FileRequest Request(Kind kind, uint32_t device = 0) const {
    FileRequest request;
    request.kind = kind;
    request.pid = static_cast<uint32_t>(::getpid());
    request.mapping.path = PathOf("file");
    request.mapping.device_major = device;
    return request;
  }
  ksym::Result<ksym::OpenedFile> Do(FileRequest request,
                                    Clock::duration patience = kEnough) {
    return child_->Wait(child_->Ask(std::move(request), patience));
  }
  // A kRead of what was held.
  FileRequest ReadRequest(ksym::OpenedFile held) const {
    FileRequest request = Request(Kind::kRead);
    request.held = std::move(held);
    return request;
  }
  int ErrnoOf(FileRequest request, Clock::duration patience = kEnough) {
    const auto file = Do(std::move(request), patience);
    return file ? 0 : file.error().sys_errno();
  }

  std::filesystem::path directory_;
  std::unique_ptr<FileChild> child_;
};

// A file that is opened by its path comes as a copy that nobody can change, and
// its bytes count for as long as it is used.
TEST_F(FileChildTest, CopiesAFile) {
  auto file = Do(Request(Kind::kOpenPath));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->size, 10u);
  EXPECT_EQ(file->owner.user, ::getuid());
  ASSERT_TRUE(file->remote);
  EXPECT_EQ(file->remote->mapping.path, PathOf("file"));
  EXPECT_EQ(child_->bytes(), 10u);
  const int seals = ::fcntl(file->fd.get(), F_GET_SEALS);
  EXPECT_EQ(seals, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  {
    const auto source =
        ksym::ByteSource::OfFile(std::move(file->fd), file->size,
                                 {.owner = {}, .room = std::move(file->room)});
    std::vector<std::byte> bytes(10);
    ASSERT_TRUE(source.ReadAt(0, bytes));
    EXPECT_EQ(std::string(reinterpret_cast<char*>(bytes.data()), 10),
              "some bytes");
    EXPECT_EQ(child_->bytes(), 10u);
  }
  EXPECT_EQ(child_->bytes(), 0u);
}

// A file that was held is read later, unless it has changed.
TEST_F(FileChildTest, ReadsWhatWasHeld) {
  auto held = Do(Request(Kind::kHold));
  ASSERT_TRUE(held) << held.error().message();
  auto copy = Do(ReadRequest(std::move(*held)));
  ASSERT_TRUE(copy) << copy.error().message();
  EXPECT_EQ(copy->size, 10u);
  EXPECT_FALSE(copy->is_held);
  held = Do(Request(Kind::kHold));
  ASSERT_TRUE(held);
  Write("file", "other bytes");
  copy = Do(ReadRequest(std::move(*held)));
  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().code(), ksym::ErrorCode::kInvalid);
}

// Errors of the file come as they are, with its path.
TEST_F(FileChildTest, PassesErrorsOn) {
  FileRequest request = Request(Kind::kOpenPath);
  request.mapping.path = PathOf("missing");
  const auto missing = Do(std::move(request));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ksym::ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().sys_errno(), ENOENT);
  EXPECT_TRUE(missing.error().message().contains(PathOf("missing")));
  // Nobody answers for a worker that died.
  EXPECT_EQ(ErrnoOf(Request(Kind::kHold, kDying)), EIO);
}

// The largest file is copied, and one that has a byte more is refused; so is
// what is beyond the bytes of all copies.
TEST_F(FileChildTest, BoundsCopies) {
  std::filesystem::resize_file(PathOf("file"), FileChild::kMaxFileBytes + 1);
  EXPECT_EQ(ErrnoOf(Request(Kind::kOpenPath)), EFBIG);
  std::filesystem::resize_file(PathOf("file"), FileChild::kMaxFileBytes);
  const auto largest = Do(Request(Kind::kOpenPath));
  ASSERT_TRUE(largest) << largest.error().message();
  EXPECT_EQ(child_->bytes(), FileChild::kMaxFileBytes);
  std::filesystem::resize_file(
      PathOf("file"), FileChild::kMaxBytes - FileChild::kMaxFileBytes + 1);
  EXPECT_EQ(ErrnoOf(Request(Kind::kOpenPath)), EFBIG);
}

// A worker that hangs is given up in time. What is asked of the same device
// then is refused at once, and others are answered.
TEST_F(FileChildTest, GivesUpWhatHangs) {
  auto begin = Clock::now();
  EXPECT_EQ(ErrnoOf(Request(Kind::kHold, kSilent), milliseconds(100)),
            ETIMEDOUT);
  EXPECT_GE(Clock::now() - begin, milliseconds(100));
  EXPECT_EQ(child_->given_up(), 1u);
  const auto warnings = child_->TakeWarnings();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings.front(),
            PathOf("file") + " (of user " + std::to_string(::getuid()) +
                ") not used: its file system does not answer");
  begin = Clock::now();
  EXPECT_EQ(ErrnoOf(Request(Kind::kHold, kSilent)), ETIMEDOUT);
  EXPECT_LT(Clock::now() - begin, kEnough / 2);
  EXPECT_EQ(child_->given_up(), 1u);
  EXPECT_EQ(ErrnoOf(Request(Kind::kHold)), 0);
}

// So many may hang; with one more nobody is asked any more.
TEST_F(FileChildTest, BoundsWhatHangs) {
  FileRequest request;
  for (uint32_t i = 0; i < FileChild::kMaxGivenUp; ++i) {
    EXPECT_EQ(ErrnoOf(Request(Kind::kHold)), 0) << i;
    request = Request(Kind::kHold, kSilent);
    request.mapping.device_minor = i;
    EXPECT_EQ(ErrnoOf(std::move(request), milliseconds(10)), ETIMEDOUT);
  }
  EXPECT_EQ(child_->given_up(), FileChild::kMaxGivenUp);
  EXPECT_EQ(ErrnoOf(Request(Kind::kHold)), ETIMEDOUT);
  EXPECT_EQ(child_->given_up(), FileChild::kMaxGivenUp);
}

// More requests than may be at work wait for their turn, and all are answered.
TEST_F(FileChildTest, TakesTurns) {
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < 3 * FileChild::kMaxAtWork; ++i) {
    ids.push_back(child_->Ask(Request(Kind::kHold, kSlow), kEnough));
  }
  EXPECT_FALSE(child_->Take(ids.front()));
  for (const uint64_t id : ids) EXPECT_TRUE(child_->Wait(id));
}

// Its end does not wait for what hangs.
// A wait for a CPU must not look like one for a file, so the child
// goes first where that is permitted.
TEST_F(FileChildTest, GoesFirst) {
  const int before = ::getpriority(PRIO_PROCESS, 0);
  if (::setpriority(PRIO_PROCESS, 0, -20) != 0) {
    GTEST_SKIP() << "needs CAP_SYS_NICE";
  }
  ::setpriority(PRIO_PROCESS, 0, before);
  ASSERT_TRUE(Do(Request(Kind::kHold)));
  std::vector<int> priorities;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::string name, parent, word;
    const std::string pid = entry.path().filename();
    std::ifstream(entry.path() / "comm") >> name;
    std::ifstream status(entry.path() / "status");
    while (status >> word && word != "PPid:") {
    }
    status >> parent;
    if (name != "ksym-files" || parent != std::to_string(::getpid())) continue;
    priorities.push_back(
        ::getpriority(PRIO_PROCESS, static_cast<id_t>(std::stoul(pid))));
  }
  EXPECT_EQ(priorities, std::vector<int>{-20});
}

TEST_F(FileChildTest, EndsAtOnce) {
  child_->Ask(Request(Kind::kHold, kSilent), seconds(3600));
  const auto begin = Clock::now();
  child_.reset();
  EXPECT_LT(Clock::now() - begin, kEnough / 2);
}

}  // namespace
}  // namespace profd
