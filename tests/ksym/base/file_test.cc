// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/base/output_file.h"
#include "ksym/base/string_pool.h"
#include "ksym/base/unique_fd.h"

namespace ksym {
namespace {

// A directory of its own for each test.
class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string name = testing::TempDir() + "ksym_file_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~FileTest() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ / name; }
  std::string Write(const std::string& name, std::string_view text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
    return Path(name);
  }
  size_t FileCount() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(directory_),
                      std::filesystem::directory_iterator()));
  }

  std::filesystem::path directory_;
};

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

// A descriptor is closed once, by its last owner.
TEST(UniqueFdTest, ClosesOnce) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const UniqueFd writer(ends[1]);
  {
    UniqueFd first(ends[0]);
    const UniqueFd second(std::move(first));
    EXPECT_EQ(second.get(), ends[0]);
    EXPECT_TRUE(IsOpen(ends[0]));
  }
  EXPECT_FALSE(IsOpen(ends[0]));
  EXPECT_FALSE(UniqueFd().valid());
}

// What is released stays open.
TEST(UniqueFdTest, ReleaseGivesUpOwnership) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe(ends.data()), 0);
  int raw = -1;
  {
    UniqueFd owner(ends[0]);
    raw = owner.Release();
  }
  EXPECT_TRUE(IsOpen(raw));
  ::close(raw);
  ::close(ends[1]);
}

// A file of exactly the limit is read, one of a byte more is not.
TEST_F(FileTest, ReadFileKeepsItsLimit) {
  const std::string path = Write("a", "12345");
  EXPECT_EQ(ReadFile(path, 5).value(), "12345");
  const auto over = ReadFile(path, 4);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code(), ErrorCode::kLimit);
  EXPECT_THAT(over.error().message(), testing::HasSubstr(path));
  EXPECT_EQ(ReadFile(Write("empty", ""), 0).value(), "");
}

// Files of /proc do not say how long they are, and a file may be as long as a
// block, or have one byte more or less.
TEST_F(FileTest, ReadFileReadsAllOfIt) {
  constexpr size_t kMax = size_t{1} << 20;
  for (const size_t size :
       {4095u, 4096u, 4097u, 65535u, 65536u, 65537u, 200'000u}) {
    std::string text(size, 'a');
    text.back() = 'z';
    const std::string path = Write("text", text);
    EXPECT_EQ(ReadFile(path, kMax).value(), text);
    EXPECT_EQ(ReadFile(path, size).value(), text);
    EXPECT_FALSE(ReadFile(path, size - 1));
  }
  const auto maps = ReadFile("/proc/self/smaps", kMax);
  ASSERT_TRUE(maps);
  EXPECT_GT(maps->size(), 8192u);
  EXPECT_NE(maps->find("[stack]"), std::string::npos);
  EXPECT_TRUE(maps->ends_with('\n'));
}

// A missing file is told from one that cannot be read.
TEST_F(FileTest, ReadFileNamesTheFailure) {
  const auto missing = ReadFile(Path("none"), 10);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
  const auto directory = ReadFile(directory_, 10);
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().code(), ErrorCode::kIo);
}

// Opening a FIFO that nobody writes to returns at once.
TEST_F(FileTest, OpenForReadDoesNotBlock) {
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_TRUE(OpenForRead(Path("fifo")));
}

// The last bytes of a file are read, one further is corrupt, and so is an
// offset that no file can have.
TEST_F(FileTest, ReadExactlyAtIsExact) {
  const auto fd = OpenForRead(Write("a", "12345"));
  ASSERT_TRUE(fd);
  std::array<char, 2> out = {};
  const auto bytes = std::as_writable_bytes(std::span(out));
  EXPECT_TRUE(ReadExactlyAt(fd->get(), 3, bytes));
  EXPECT_EQ(std::string_view(out.data(), 2), "45");
  for (const uint64_t offset : {uint64_t{4}, uint64_t{1} << 63, UINT64_MAX}) {
    const auto read = ReadExactlyAt(fd->get(), offset, bytes);
    ASSERT_FALSE(read) << offset;
    EXPECT_EQ(read.error().code(), ErrorCode::kCorrupt) << offset;
  }
}

// Lines come without their newline; the last one needs none; long ones grow
// the block.
TEST_F(FileTest, ForEachLineSplits) {
  const std::string large(200'000, 'x');
  const auto fd = OpenForRead(Write("a", "one\n\n" + large + "\nlast"));
  ASSERT_TRUE(fd);
  std::vector<std::string> lines;
  ASSERT_TRUE(ForEachLine(fd->get(), [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  }));
  EXPECT_THAT(lines, testing::ElementsAre("one", "", large, "last"));
}

// Blocks of lines are the file, cut behind newlines only; long lines grow the
// block, and the callback can end the reading.
TEST_F(FileTest, ForEachBlockOfLinesCutsBehindNewlines) {
  std::string text;
  for (size_t i = 0; i < 40'000; ++i) text += std::string(i % 7, 'y') + '\n';
  text += std::string(200'000, 'x') + "\nlast";
  const std::string path = Write("a", text);
  const auto fd = OpenForRead(path);
  ASSERT_TRUE(fd);
  std::string joined;
  size_t blocks = 0;
  ASSERT_TRUE(ForEachBlockOfLines(fd->get(), [&](std::string_view lines) {
    EXPECT_TRUE(lines.ends_with('\n') || lines == "last");
    joined += lines;
    ++blocks;
    return true;
  }));
  EXPECT_EQ(joined, text);
  EXPECT_GT(blocks, 2u);

  const auto again = OpenForRead(path);
  ASSERT_TRUE(again);
  size_t calls = 0;
  ASSERT_TRUE(ForEachBlockOfLines(
      again->get(), [&](std::string_view) { return ++calls < 2; }));
  EXPECT_EQ(calls, 2u);
}

// The callback can end the reading.
TEST_F(FileTest, ForEachLineStops) {
  const auto fd = OpenForRead(Write("a", "one\ntwo\nthree\n"));
  ASSERT_TRUE(fd);
  int count = 0;
  ASSERT_TRUE(
      ForEachLine(fd->get(), [&](std::string_view) { return ++count < 2; }));
  EXPECT_EQ(count, 2);
}

// A committed file has its name and text, and nothing is left beside it.
TEST_F(FileTest, AtomicFileAppearsWhole) {
  Write("a", "old");
  {
    auto file = AtomicFile::Create(Path("a"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->Write("new text"));
    EXPECT_EQ(ReadFile(Path("a"), 100).value(), "old");
    ASSERT_TRUE(file->Commit(AtomicFile::Durability::kDurable));
  }
  EXPECT_EQ(ReadFile(Path("a"), 100).value(), "new text");
  EXPECT_EQ(FileCount(), 1u);
}

// A file that is not committed leaves no trace.
TEST_F(FileTest, AtomicFileVanishesWithoutCommit) {
  {
    auto file = AtomicFile::Create(Path("a"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->Write("text"));
  }
  EXPECT_EQ(FileCount(), 0u);
}

// The mode is what open(2) would have given, not mkstemp's.
// A process that is killed while it writes leaves nothing behind.
TEST_F(FileTest, AtomicFileOfAKilledProcessVanishes) {
  const UniqueFd probe(
      ::open(Path("").c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (!probe.valid()) GTEST_SKIP() << "no O_TMPFILE on this file system";
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = AtomicFile::Create(Path("a"));
    const bool written = file && file->Write("half");
    ::kill(::getpid(), written ? SIGKILL : SIGTERM);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(FileCount(), 0u);
}

TEST_F(FileTest, AtomicFileObeysTheUmask) {
  const mode_t mask = ::umask(027);
  auto file = AtomicFile::Create(Path("a"));
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Commit());
  ::umask(mask);
  struct stat status = {};
  ASSERT_EQ(::stat(Path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

// A directory that does not exist is the caller's to hear about.
TEST_F(FileTest, AtomicFileNeedsItsDirectory) {
  const auto file = AtomicFile::Create(Path("none/a"));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::kNotFound);
}

// A temporary file belongs to its writer; one that a writer left is removed.
TEST_F(FileTest, OnlyAbandonedFilesAreRemoved) {
  const std::string left = Path("out.abcdef");
  ASSERT_TRUE(WriteOutputFile(left, "half"));
  {
    const auto writing = OpenForRead(left);
    ASSERT_TRUE(writing);
    ASSERT_EQ(::flock(writing->get(), LOCK_EX), 0);
    EXPECT_FALSE(AtomicFile::RemoveAbandoned(left));
  }
  EXPECT_TRUE(AtomicFile::RemoveAbandoned(left));
  EXPECT_FALSE(AtomicFile::RemoveAbandoned(left));
  // The lock that is looked at is one that a writer has.
  const auto file = AtomicFile::Create(Path("out"));
  ASSERT_TRUE(file);
  const std::string self = "/proc/self/fd/" + std::to_string(file->fd());
  const auto other = OpenForRead(self);
  ASSERT_TRUE(other);
  EXPECT_NE(::flock(other->get(), LOCK_EX | LOCK_NB), 0);
}

// A line of 64 MiB is refused, whatever else follows.
TEST_F(FileTest, EndlessLineIsRefused) {
  const auto zeros = OpenForRead("/dev/zero");
  ASSERT_TRUE(zeros);
  const auto read = ForEachLine(zeros->get(), [](std::string_view) {
    ADD_FAILURE();
    return false;
  });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), ErrorCode::kLimit);
}

// Where everybody may write, what somebody else has put there is neither
// followed nor replaced; in other directories, and of one's own, it is.
TEST_F(FileTest, BaitOfOthersIsRefused) {
  constexpr uid_t kStranger = 54321;
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  ASSERT_TRUE(WriteOutputFile(Path("victim"), "precious"));
  std::filesystem::create_directory(Path("common"));
  for (const mode_t mode : {01777U, 0755U}) {
    ASSERT_EQ(::chmod(Path("common").c_str(), mode), 0);
    const std::string name = Path("common/" + std::to_string(mode));
    ASSERT_EQ(::symlink(Path("victim").c_str(), (name + "link").c_str()), 0);
    ASSERT_EQ(::lchown((name + "link").c_str(), kStranger, kStranger), 0);
    ASSERT_TRUE(WriteOutputFile(name + "file", "bait"));
    ASSERT_EQ(::chown((name + "file").c_str(), kStranger, kStranger), 0);
    ASSERT_TRUE(WriteOutputFile(name + "own", "old"));
    const bool is_common = mode == 01777;
    EXPECT_EQ(WriteOutputFile(name + "link", "new").has_value(), !is_common);
    EXPECT_EQ(WriteOutputFile(name + "file", "new").has_value(), !is_common);
    EXPECT_TRUE(WriteOutputFile(name + "own", "new"));
    EXPECT_EQ(*ReadFile(Path("victim"), 100), is_common ? "precious" : "new");
  }
}

// An output goes to where a link leads, and leaves the link.
TEST_F(FileTest, OutputFollowsLinks) {
  ASSERT_EQ(::symlink("b", Path("a").c_str()), 0);
  ASSERT_TRUE(WriteOutputFile(Path("a"), "text"));
  EXPECT_EQ(ReadFile(Path("b"), 100).value(), "text");
  EXPECT_TRUE(std::filesystem::is_symlink(Path("a")));
  EXPECT_EQ(FileCount(), 2u);
}

// What is no regular file is written to, and not replaced by one.
TEST_F(FileTest, OutputWritesToPipes) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  const UniqueFd reader(::open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK));
  ASSERT_TRUE(reader.valid());
  ASSERT_TRUE(WriteOutputFile(Path("pipe"), "text"));
  char read[8] = {};
  EXPECT_EQ(::read(reader.get(), read, sizeof read), 4);
  EXPECT_STREQ(read, "text");
  EXPECT_TRUE(std::filesystem::is_fifo(Path("pipe")));
}

// A directory is an error that names the path.
TEST_F(FileTest, OutputThatIsADirectory) {
  const auto directory = WriteOutputFile(Path(""), "text");
  ASSERT_FALSE(directory);
  EXPECT_NE(directory.error().message().find(Path("")), std::string::npos);
}

// A mapped file shows the file's bytes, also when there are none; what is no
// regular file is refused.
TEST_F(FileTest, MappedFileShowsTheBytes) {
  const auto mapped = MappedFile::Open(Write("a", "text"));
  ASSERT_TRUE(mapped);
  EXPECT_EQ(mapped->bytes().size(), 4u);
  EXPECT_EQ(mapped->bytes()[3], std::byte{'t'});
  const auto empty = MappedFile::Open(Write("empty", ""));
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->bytes().empty());
  const auto directory = MappedFile::Open(directory_);
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().code(), ErrorCode::kUnsupported);
}

// An error's code follows the system's, and each caller adds its context.
TEST(ErrorTest, CarriesCodeAndContext) {
  const Error error = Error::FromErrno(EACCES, "/etc/x").WithContext("symbols");
  EXPECT_EQ(error.code(), ErrorCode::kPermission);
  EXPECT_EQ(error.sys_errno(), EACCES);
  EXPECT_EQ(error.message(), "symbols: /etc/x: Permission denied");
  EXPECT_EQ(Error::FromErrno(ESRCH, "").code(), ErrorCode::kNotFound);
  EXPECT_EQ(Error::FromErrno(ENOSYS, "").code(), ErrorCode::kUnsupported);
  EXPECT_EQ(Error::FromErrno(EIO, "").code(), ErrorCode::kIo);
}

// Equal texts are one view, which later texts do not move.
TEST(StringPoolTest, KeepsEachTextOnce) {
  StringPool pool(1 << 20);
  const auto first = pool.Intern(std::string("name"));
  ASSERT_TRUE(first);
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(pool.Intern("text " + std::to_string(i)));
  }
  EXPECT_EQ(*first, "name");
  EXPECT_EQ(pool.Intern("name")->data(), first->data());
  EXPECT_EQ(pool.size(), 10'001u);
}

// A text that fills the pool exactly is taken; then only known ones are.
TEST(StringPoolTest, KeepsItsBound) {
  StringPool pool(8);
  EXPECT_TRUE(pool.Intern("123"));
  EXPECT_FALSE(pool.Intern("456789"));
  EXPECT_TRUE(pool.Intern("45678"));
  EXPECT_FALSE(pool.Intern("9"));
  EXPECT_TRUE(pool.Intern("123"));
  EXPECT_EQ(pool.bytes(), 8u);
}

}  // namespace
}  // namespace ksym
