#include "ksym/process/mapped_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "ksym/process/vdso.h"

namespace ksym {
namespace {

// A file mapped executable into this process, in a folder of its own.
class MappedFileTest : public testing::Test {
 protected:
  MappedFileTest() {
    std::string name = testing::TempDir() + "ksym_mapped_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = std::filesystem::canonical(name);
    path_ = folder_ / "file";
    std::ofstream(path_) << std::string(4096, 'a');
    MapFile();
  }
  ~MappedFileTest() override {
    if (memory_ != MAP_FAILED) ::munmap(memory_, 4096);
    std::filesystem::remove_all(folder_);
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

  std::filesystem::path folder_;
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
  std::ofstream(folder_ / "new") << std::string(4096, 'b');
  std::filesystem::rename(folder_ / "new", path_);
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

// Of a process that is gone the host's file is taken, if the inode tells that
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
  std::ofstream(folder_ / "new") << std::string(4096, 'b');
  std::filesystem::rename(folder_ / "new", path_);
  const auto other = HoldMappedOrHostFile(kGone, mapping_);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), ErrorCode::kNotFound);
}

// No link and no ".." leads out of the root.
TEST_F(MappedFileTest, StaysInTheRoot) {
  const UniqueFd root(::open(folder_.c_str(), O_PATH | O_DIRECTORY));
  ASSERT_EQ(::symlink("/etc/passwd", (folder_ / "link").c_str()), 0);
  ASSERT_EQ(::symlink("/file", (folder_ / "inside").c_str()), 0);
  EXPECT_FALSE(OpenInRoot(root.get(), "link", Links::kFollowInside));
  EXPECT_FALSE(
      OpenInRoot(root.get(), "../../../etc/passwd", Links::kFollowInside));
  EXPECT_TRUE(OpenInRoot(root.get(), "inside", Links::kFollowInside));
  EXPECT_FALSE(OpenInRoot(root.get(), "inside", Links::kRefuse));
  EXPECT_TRUE(OpenInRoot(root.get(), "../file", Links::kRefuse));
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
