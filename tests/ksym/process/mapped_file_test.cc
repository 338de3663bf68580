// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/mapped_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "ksym/process/vdso.h"

namespace ksym {
namespace {

// A file mapped executable into this process, in a directory of its own.
class MappedFileTest : public testing::Test {
 protected:
  MappedFileTest() {
    std::string name = testing::TempDir() + "ksym_mapped_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = std::filesystem::canonical(name);
    path_ = directory_ / "file";
    std::ofstream(path_) << std::string(4096, 'a');
    MapFile();
  }
  ~MappedFileTest() override {
    if (memory_ != MAP_FAILED) ::munmap(memory_, 4096);
    std::filesystem::remove_all(directory_);
  }

  void MapFile() {
    const UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    memory_ =
        ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd.get(), 0);
    if (memory_ == MAP_FAILED) return;
    ReadMapping();
  }

  void ReadMapping() {
    ProcessImage image;
    auto mappings = ReadMaps(Pid());
    ASSERT_TRUE(mappings);
    image.mappings = std::move(*mappings);
    const Mapping* mapping = image.Find({reinterpret_cast<uint64_t>(memory_)});
    ASSERT_NE(mapping, nullptr);
    mapping_ = *mapping;
  }

  static uint32_t Pid() { return static_cast<uint32_t>(::getpid()); }

  // As it is for a process without the capabilities that map_files needs: a
  // mapping with other bounds has no entry there.
  Mapping WithoutMapFiles() const {
    Mapping mapping = mapping_;
    mapping.end = mapping.end + 4096;
    return mapping;
  }

  ErrorCode FailureToOpen(const Mapping& mapping) const {
    const auto file = OpenMappedFile(Pid(), mapping);
    EXPECT_FALSE(file);
    return file ? ErrorCode::kIo : file.error().code();
  }

  std::filesystem::path directory_;
  std::filesystem::path path_;
  void* memory_ = MAP_FAILED;
  Mapping mapping_;
};

char FirstByte(const OpenedFile& file) {
  char byte = 0;
  EXPECT_EQ(::pread(file.fd.get(), &byte, 1, 0), 1);
  return byte;
}

// The file is opened by its path when map_files cannot be used, and what
// fstat says of it is kept.
TEST_F(MappedFileTest, OpensByPath) {
  const auto file = OpenMappedFile(Pid(), WithoutMapFiles());
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(FirstByte(*file), 'a');
  EXPECT_EQ(file->size, 4096u);
  EXPECT_NE(file->mtime_ns, 0);
}

// Another file under the same path is never taken for the mapped one.
TEST_F(MappedFileTest, RefusesAReplacedFile) {
  std::ofstream(directory_ / "new") << std::string(4096, 'b');
  std::filesystem::rename(directory_ / "new", path_);
  EXPECT_EQ(FailureToOpen(WithoutMapFiles()), ErrorCode::kInvalid);
  const auto host = OpenHostFile(WithoutMapFiles());
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().code(), ErrorCode::kInvalid);
}

// The same inode number on another device is another file.
TEST_F(MappedFileTest, ComparesTheDevice) {
  Mapping mapping = WithoutMapFiles();
  ++mapping.device_minor;
  const auto file = OpenMappedFile(Pid(), mapping);
  if (file) GTEST_SKIP() << "this file system has two device numbers";
  EXPECT_EQ(file.error().code(), ErrorCode::kInvalid);
}

// Where the device can be compared, device and inode stand for the file alone.
TEST_F(MappedFileTest, KnowsThatTheNumbersTell) {
  struct statfs status = {};
  ASSERT_EQ(::statfs(path_.c_str(), &status), 0);
  const bool can_compare = status.f_type != OVERLAYFS_SUPER_MAGIC &&
                           status.f_type != BTRFS_SUPER_MAGIC;
  const auto by_path = OpenMappedFile(Pid(), WithoutMapFiles());
  ASSERT_TRUE(by_path) << by_path.error().message();
  EXPECT_EQ(by_path->is_only_one, can_compare);
}

// A deleted file is gone by its path, but map_files still leads to it.
TEST_F(MappedFileTest, OpensADeletedFileThroughMapFiles) {
  ASSERT_TRUE(std::filesystem::remove(path_));
  ReadMapping();
  EXPECT_THAT(mapping_.path, testing::EndsWith(" (deleted)"));
  EXPECT_EQ(FailureToOpen(WithoutMapFiles()), ErrorCode::kNotFound);
  const auto file = OpenMappedFile(Pid(), mapping_);
  if (!file) GTEST_SKIP() << "needs CAP_CHECKPOINT_RESTORE: map_files";
  EXPECT_EQ(FirstByte(*file), 'a');
}

// What is held can be opened when its name and its process's mapping are gone.
TEST_F(MappedFileTest, OpensWhatItHolds) {
  auto held = HoldMappedFile(Pid(), WithoutMapFiles());
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_EQ(held->size, 4096u);
  char byte = 0;
  EXPECT_EQ(::pread(held->fd.get(), &byte, 1, 0), -1);
  ASSERT_TRUE(std::filesystem::remove(path_));
  ::munmap(std::exchange(memory_, MAP_FAILED), 4096);
  ASSERT_TRUE(OpenHeld(*held));
  EXPECT_EQ(FirstByte(*held), 'a');
  const int fd = held->fd.get();
  ASSERT_TRUE(OpenHeld(*held));  // it is open
  EXPECT_EQ(held->fd.get(), fd);
}

// A file that came back under its old name is found without the mark, and one
// whose name really ends so is found with it.
TEST_F(MappedFileTest, StripsTheDeletedMarkLast) {
  Mapping mapping = WithoutMapFiles();
  mapping.path = mapping.path.str() + " (deleted)";
  EXPECT_TRUE(OpenMappedFile(Pid(), mapping));
  std::filesystem::rename(path_, mapping.path.str());
  EXPECT_TRUE(OpenMappedFile(Pid(), mapping));
}

// What is no regular file now is not waited for.
TEST_F(MappedFileTest, RefusesAFifo) {
  ASSERT_TRUE(std::filesystem::remove(path_));
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(FailureToOpen(WithoutMapFiles()), ErrorCode::kUnsupported);
}

// A process that does not exist has no files.
TEST_F(MappedFileTest, TellsThatTheProcessIsGone) {
  const auto file = OpenMappedFile(0x7fffffff, mapping_);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::kNotFound);
}

// The host's file is taken for a process that is gone, if the inode tells that
// it is the same.
TEST_F(MappedFileTest, TakesTheHostsFileOfOneThatIsGone) {
  constexpr uint32_t kGone = 0x7fffffff;
  auto file = HoldMappedOrHostFile(kGone, mapping_);
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_TRUE(OpenHeld(*file));
  EXPECT_EQ(FirstByte(*file), 'a');
  Mapping unknown = mapping_;
  unknown.inode = 0;
  EXPECT_FALSE(HoldMappedOrHostFile(kGone, unknown));
  std::ofstream(directory_ / "new") << std::string(4096, 'b');
  std::filesystem::rename(directory_ / "new", path_);
  const auto other = HoldMappedOrHostFile(kGone, mapping_);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), ErrorCode::kNotFound);
}

// A process whose root is the directory; -1: there can be none.
pid_t ConfinedChild(const std::filesystem::path& directory) {
  int ready[2] = {-1, -1};
  if (::pipe(ready) != 0) return -1;
  const pid_t pid = ::fork();
  if (pid == 0) {
    const char is_confined = ::chroot(directory.c_str()) == 0 ? 1 : 0;
    if (::write(ready[1], &is_confined, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char is_confined = 0;
  const bool told = ::read(ready[0], &is_confined, 1) == 1;
  ::close(ready[0]);
  ::close(ready[1]);
  if (told && is_confined != 0) return pid;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return -1;
}

// No link and no ".." leads out of the root.
TEST_F(MappedFileTest, StaysInTheRoot) {
  ASSERT_EQ(::symlink("/etc/passwd", (directory_ / "link").c_str()), 0);
  ASSERT_EQ(::symlink("/file", (directory_ / "inside").c_str()), 0);
  const pid_t confined = ConfinedChild(directory_);
  if (confined < 0) GTEST_SKIP() << "needs CAP_SYS_CHROOT";
  const auto opens = [confined](const std::string& path, Links links) {
    return OpenFileOfProcess(static_cast<uint32_t>(confined), path, links)
        .has_value();
  };
  EXPECT_FALSE(opens("/link", Links::kFollowInside));
  EXPECT_FALSE(opens("/../../../etc/passwd", Links::kFollowInside));
  EXPECT_TRUE(opens("/inside", Links::kFollowInside));
  EXPECT_FALSE(opens("/inside", Links::kRefuse));
  EXPECT_TRUE(opens("/../file", Links::kRefuse));
  ::kill(confined, SIGKILL);
  ::waitpid(confined, nullptr, 0);
}

// A local file is held and opened as ever, where only local files may be.
TEST_F(MappedFileTest, HoldsLocalFiles) {
  FileSystems local;
  const auto held = HoldMappedFile(Pid(), mapping_, &local);
  if (!held && IsRemote(held.error())) {
    GTEST_SKIP() << "needs " << directory_ << " on a local file system";
  }
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_EQ(held->owner.user, ::getuid());
  EXPECT_TRUE(HoldMappedFile(Pid(), WithoutMapFiles(), &local));
  EXPECT_TRUE(OpenFileOfHost(path_, Links::kFollowInside, &local));
}

// A file on a device that is not known, one behind a link, and one whose path
// leads up again are not asked for there.
TEST_F(MappedFileTest, RefusesOtherFiles) {
  FileSystems local;
  Mapping mapping = mapping_;
  mapping.device_major = 4095;
  const auto unknown = HoldMappedOrHostFile(Pid(), mapping, &local);
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(IsRemote(unknown.error()));
  const std::string link = directory_ / "link";
  ASSERT_EQ(::symlink("file", link.c_str()), 0);
  for (const std::string& path : {link, directory_.string() + "/../file"}) {
    const auto refused = OpenFileOfHost(path, Links::kFollowInside, &local);
    ASSERT_FALSE(refused);
    EXPECT_TRUE(IsRemote(refused.error())) << refused.error().message();
  }
  const auto strict = OpenFileOfHost(link, Links::kRefuse);
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().sys_errno(), ELOOP);
  // The path on this machine is tried for a process that is gone.
  constexpr uint32_t kNobody = 0x7fffffff;
  const auto gone = HoldMappedFile(kNobody, mapping, &local);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), ErrorCode::kNotFound);
}

// A memfd has no path to open, but map_files leads to it.
TEST_F(MappedFileTest, OpensAMemfd) {
  const UniqueFd fd(::memfd_create("code", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(fd.get(), 4096), 0);
  ::munmap(memory_, 4096);
  memory_ =
      ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(memory_, MAP_FAILED);
  ReadMapping();
  EXPECT_EQ(mapping_.path, "/memfd:code (deleted)");
  const auto file = OpenMappedFile(Pid(), mapping_);
  if (!file) GTEST_SKIP() << "needs CAP_CHECKPOINT_RESTORE: map_files";
  EXPECT_EQ(file->size, 4096u);
}

// The vdso's image is an ELF file.
TEST(VdsoTest, IsAnElfImage) {
  const std::string image = OwnVdsoImage();
  if (image.empty()) GTEST_SKIP() << "the kernel gives no vdso";
  EXPECT_EQ(image.substr(0, 4), "\177ELF");
}

}  // namespace
}  // namespace ksym
