// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/file_systems.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <string>

#include "ksym/base/file.h"
#include "ksym/base/unique_fd.h"

namespace ksym {
namespace {

constexpr const char* kMountLine =
    "36 35 98:7 /directory /mnt/a\\040b\\134c rw,noatime master:1 shared:2 - "
    "fuse.sshfs host:/home rw,user_id=1000\n";

// A line's number, device, place and type are read, with its escapes decoded.
TEST(MountinfoTest, ReadsALine) {
  const auto mounts = ParseMountinfo(kMountLine);
  ASSERT_TRUE(mounts);
  ASSERT_EQ(mounts->size(), 1u);
  EXPECT_EQ(mounts->front(), (Mount{.id = 36,
                                    .device_major = 98,
                                    .device_minor = 7,
                                    .point = "/mnt/a b\\c",
                                    .type = "fuse.sshfs"}));
}

// What is no such line is skipped, and the others are read.
TEST(MountinfoTest, SkipsOtherLines) {
  const std::string good = kMountLine;
  for (const std::string bad :
       {"\n", "36\n", "x 35 98:7 / / rw - ext4 d rw\n",
        "36 35 98 / / rw - ext4 d rw\n", "36 35 98:7 / relative rw - ext4 d\n",
        "36 35 98:7 / / rw ext4 d rw\n", "36 35 98:7 / / rw -\n",
        "36 35 98:7 / / rw - \n", "4294967296 35 98:7 / / rw - ext4 d rw\n"}) {
    const auto mounts = ParseMountinfo(bad + good);
    ASSERT_TRUE(mounts);
    EXPECT_EQ(mounts->size(), 1u) << bad;
  }
  const auto odd = ParseMountinfo("36 35 0:1 / /\\08\\777\\04 rw - tmpfs t rw");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->front().point, "/\\08\\777\\04");
}

// So many mounts are read, and one more is too many.
TEST(MountinfoTest, BoundsMounts) {
  std::string text;
  for (size_t i = 0; i < kMaxMounts; ++i)
    text += "1 0 0:1 / / rw - tmpfs t r\n";
  const auto all = ParseMountinfo(text);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), kMaxMounts);
  const auto more = ParseMountinfo(text + "1 0 0:1 / / rw - tmpfs t r\n");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), ErrorCode::kLimit);
}

// Types of disks and of memory are local, those that another program or machine
// answers for are not, and neither is what is not known.
TEST(MountinfoTest, KnowsLocalTypes) {
  for (const char* type :
       {"ext4", "xfs", "btrfs", "tmpfs", "bcachefs", "zfs"}) {
    EXPECT_TRUE(IsLocalType(type)) << type;
  }
  for (const char* type :
       {"fuse", "fuse.sshfs", "fuseblk", "nfs", "nfs4", "cifs", "9p",
        "virtiofs", "ceph", "overlay", "autofs", "afs", "", "ext", "ext44"}) {
    EXPECT_FALSE(IsLocalType(type)) << type;
  }
}

class FileSystemsTest : public ::testing::Test {
 protected:
  FileSystems systems_;
};

// A file of this program's, by its device, its path and its descriptor.
TEST_F(FileSystemsTest, KnowsOwnFiles) {
  const std::string path = "/dev/shm";
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) GTEST_SKIP() << "needs " << path;
  const uint32_t pid = static_cast<uint32_t>(::getpid());
  EXPECT_TRUE(
      systems_.IsLocalDevice(pid, major(status.st_dev), minor(status.st_dev)));
  EXPECT_FALSE(systems_.IsLocalDevice(pid, 4095, 1));
  const UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  EXPECT_TRUE(systems_.IsLocalFile(pid, fd.get()));
  EXPECT_TRUE(systems_.IsLocalPath(pid, path + "/file"));
  EXPECT_TRUE(systems_.IsLocalPath(0, path + "/file"));
}

// What /proc shows is not on a device; a path below it, or one that leads up
// again, is not local.
TEST_F(FileSystemsTest, RefusesOtherPaths) {
  const UniqueFd fd(::open("/proc/self/maps", O_PATH | O_CLOEXEC));
  EXPECT_FALSE(systems_.IsLocalFile(0, fd.get()));
  EXPECT_FALSE(systems_.IsLocalPath(0, "/proc/self/exe"));
  EXPECT_TRUE(systems_.IsLocalPath(0, "/process"));
  EXPECT_FALSE(systems_.IsLocalPath(0, "/usr/../proc/self/exe"));
  EXPECT_FALSE(systems_.IsLocalPath(0, "/usr/.."));
}

// No mountinfo shows where memfds are.
TEST_F(FileSystemsTest, KnowsMemory) {
  const UniqueFd fd(::memfd_create("code", MFD_CLOEXEC));
  struct stat status = {};
  ASSERT_EQ(::fstat(fd.get(), &status), 0);
  EXPECT_TRUE(
      systems_.IsLocalDevice(0, major(status.st_dev), minor(status.st_dev)));
  EXPECT_TRUE(systems_.IsLocalFile(0, fd.get()));
}

// Nothing is known of a process that is not there, but for devices that this
// one knows.
TEST_F(FileSystemsTest, KnowsNothingOfNobody) {
  EXPECT_FALSE(systems_.IsLocalPath(0x7fffffff, "/usr"));
  EXPECT_FALSE(systems_.IsLocalDevice(0x7fffffff, 4095, 1));
}

}  // namespace
}  // namespace ksym
