// SPDX-License-Identifier: Apache-2.0
// Through whom the files of tables are opened, and whose they are.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "tests/daemon/unwind/unwind_tables_fixture.h"

namespace profd {
namespace {

using ksym::Address;
using ksym::ProcessId;

// A file that one process can no more be asked for is opened through another
// that maps it; what nobody has is tried again after a while.
TEST_F(UnwindTablesTest, OpensFilesThroughWhoIsThere) {
  const ProcessId a = Start(1);
  if (mappings_of_[1].device_major == 0) {
    GTEST_SKIP() << "the file system of " << directory_
                 << " has no device: the path tells its files apart";
  }
  constexpr uint32_t kGone = 0x7fffffff;
  ksym::Mapping gone = mappings_of_[1];
  gone.path = "/nowhere/at/all";
  EXPECT_FALSE(tables_->CodeOf(kGone, gone));  // to come
  Poll({});
  EXPECT_EQ(ListOf(a), Lists::kRight);
  EXPECT_EQ(tables_->statistics().files_failed, 0u);
}

// A file that is nowhere costs one failure, and is found when it is there.
TEST_F(UnwindTablesTest, OpensFilesWhenTheyAreThere) {
  const ProcessId a = Start(1);
  const std::string path = mappings_of_[1].path;
  std::filesystem::rename(path, path + " elsewhere");
  for (int i = 0; i < 100; ++i) {
    const auto code = tables_->CodeOf(a.pid, mappings_of_[1]);
    ASSERT_TRUE(code);
    EXPECT_EQ(code->kind, ksym::CodeAt::Kind::kNoTable);
  }
  // Once, as far as the file is concerned.
  EXPECT_EQ(tables_->statistics().files_failed, 0u);
  Poll({a}, 20);
  EXPECT_EQ(tables_->statistics().files_failed, 1u);
  EXPECT_EQ(ListOf(a), Lists::kWithoutTable);

  // A process with stacks that were copied finds it at once.
  std::filesystem::rename(path + " elsewhere", path);
  EXPECT_FALSE(tables_->CodeOf(a.pid, mappings_of_[1]));
  Poll({});
  EXPECT_EQ(ListOf(a), Lists::kRight);
}

// So does, after a while, a process whose stacks end at code without a table.
TEST_F(UnwindTablesTest, TriesAgainToOpen) {
  const ProcessId a = Start(1);
  const std::string path = mappings_of_[1].path;
  std::filesystem::rename(path, path + " elsewhere");
  tables_->WantAll(a);
  Poll({}, 20);
  EXPECT_EQ(ListOf(a), Lists::kWithoutTable);
  std::filesystem::rename(path + " elsewhere", path);
  Poll({}, 2);
  EXPECT_EQ(ListOf(a), Lists::kWithoutTable);
  std::this_thread::sleep_for(kIdle);
  tables_->NoteSample(a, SteadyClock::now());
  Poll({}, 2);
  EXPECT_EQ(ListOf(a), Lists::kRight);
}

// An overlay's layers number their files alike: what has the number of another
// file does not get its table.
TEST_F(UnwindTablesTest, KeepsLayersApart) {
  std::string memory = "/dev/shm/unwind_tables_XXXXXX";
  if (::mkdtemp(memory.data()) == nullptr) GTEST_SKIP() << "needs /dev/shm";
  std::filesystem::remove_all(std::exchange(directory_, memory));
  const ProcessId a = Start(1);
  if (mappings_of_[1].device_major != 0) GTEST_SKIP() << "no tmpfs there";
  Poll({a});
  EXPECT_EQ(ListOf(a), Lists::kRight);
  ksym::Mapping other = mappings_of_[1];
  other.path = directory_ + "/of another layer";
  const auto code = tables_->CodeOf(a.pid, other);
  ASSERT_TRUE(code);
  EXPECT_EQ(code->kind, ksym::CodeAt::Kind::kNoTable);
}

// A process with mounts of its own, in a directory that is to become a file
// system.
class MountedProcess {
 public:
  explicit MountedProcess(const std::string& script) {
    int ends[2] = {};
    if (::pipe(ends) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], STDOUT_FILENO);
      const std::string all = script + "; echo; exec sleep 60";
      ::execlp("unshare", "unshare", "--mount", "sh", "-ec", all.c_str(),
               nullptr);
      ::_exit(1);
    }
    ::close(ends[1]);
    char byte = 0;
    is_ready_ = ::read(ends[0], &byte, 1) == 1;
    ::close(ends[0]);
  }
  ~MountedProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  MountedProcess(const MountedProcess&) = delete;
  MountedProcess& operator=(const MountedProcess&) = delete;

  bool is_ready() const { return is_ready_; }
  uint32_t pid() const { return static_cast<uint32_t>(pid_); }

 private:
  pid_t pid_ = -1;
  bool is_ready_ = false;
};

// A user's file that has the numbers of root's, where an overlay of the user's
// shows it, has a table for the user's process alone, whoever comes first.
TEST_F(UnwindTablesTest, KeepsUsersApart) {
  const std::string path = directory_ + "/lib.so";
  const MountedProcess victim("mount -t tmpfs tmpfs " + directory_ +
                              "; mkdir " + directory_ + "/a; cp " + kLibrary +
                              " " + path);
  const std::string root = "/proc/" + std::to_string(victim.pid()) + "/root";
  struct stat status = {};
  if (!victim.is_ready() || ::stat((root + path).c_str(), &status) != 0) {
    GTEST_SKIP() << "needs mount namespaces";
  }
  const MountedProcess attacker(
      "mount -t tmpfs tmpfs /mnt; mkdir /mnt/a; "
      "cp /usr/lib/x86_64-linux-gnu/libc.so.6 /mnt/a/lib.so; "
      "chown 54321 /mnt/a/lib.so; mkdir /mnt/b; "
      "mount -t overlay -o lowerdir=/mnt/a:/mnt/b overlay " +
      directory_);
  struct stat other = {};
  const std::string shown =
      "/proc/" + std::to_string(attacker.pid()) + "/root" + path;
  if (!attacker.is_ready() || ::stat(shown.c_str(), &other) != 0 ||
      other.st_ino != status.st_ino) {
    GTEST_SKIP() << "needs overlays that number files as their layers do";
  }
  ksym::Mapping mapping;
  mapping.start = Address{0x7f00'0000'0000};
  mapping.end = mapping.start + code_.file_size;
  mapping.file_offset = code_.file_offset;
  mapping.device_major = major(status.st_dev);
  mapping.device_minor = minor(status.st_dev);
  mapping.inode = status.st_ino;
  mapping.path = path;
  const ProcessId bad = {.pid = attacker.pid(), .start_ns = 1};
  const ProcessId good = {.pid = victim.pid(), .start_ns = 2};
  for (const ProcessId& id : {bad, good}) {
    mappings_of_[id.start_ns] = mapping;
    tables_->Update({.id = id, .mappings = {mapping}});
    Poll({id}, 3);
  }
  Poll({bad, good}, 3);
  EXPECT_EQ(ListOf(good), Lists::kRight);
  EXPECT_EQ(ListOf(bad), Lists::kWrong);
}

}  // namespace
}  // namespace profd
