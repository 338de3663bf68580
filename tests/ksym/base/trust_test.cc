// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/trust.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "ksym/base/unique_fd.h"

namespace ksym {
namespace {

constexpr uid_t kSelf = 990;
constexpr uid_t kUser = 1000;
constexpr uid_t kOther = 1001;
constexpr uid_t kOverflow = 65534;

FileOwner File(uid_t user, mode_t mode = 0644) {
  return {.device = 1, .user = user, .group = user, .mode = S_IFREG | mode};
}

FileOwner Served(uint64_t device, uid_t user) {
  FileOwner file = File(user);
  file.device = device;
  file.is_served = true;
  return file;
}

// Root's files and this user's are believed, and nobody else's.
TEST(TrustTest, MachineIsRootAndThisUser) {
  EXPECT_TRUE(IsOfMachine(File(0), kSelf));
  EXPECT_TRUE(IsOfMachine(File(kSelf), kSelf));
  EXPECT_FALSE(IsOfMachine(File(kUser), kSelf));
  EXPECT_FALSE(IsOfMachine(File(kOverflow), kSelf));
}

// Those who may write to a file count as its owners; this user's groups do not
// matter, root's do.
TEST(TrustTest, WritersCount) {
  EXPECT_FALSE(IsOfMachine(File(0, 0646), kSelf));
  EXPECT_FALSE(IsOfMachine(File(kSelf, 0646), kSelf));
  EXPECT_TRUE(IsOfMachine(File(kSelf, 0664), kSelf));
  FileOwner file = File(0, 0664);
  EXPECT_TRUE(IsOfMachine(file, kSelf));
  file.group = 50;
  EXPECT_FALSE(IsOfMachine(file, kSelf));
  file.mode = 0644;
  EXPECT_TRUE(IsOfMachine(file, kSelf));
}

// What a program says of owners is not believed.
TEST(TrustTest, ServedFilesAreNobodys) {
  EXPECT_FALSE(IsOfMachine(Served(7, 0), kSelf));
  EXPECT_FALSE(IsOfMachine(Served(7, kSelf), kSelf));
  EXPECT_FALSE(MayName(Served(7, 0), File(0), kSelf));
  EXPECT_FALSE(MayName(Served(7, kUser), File(kUser), kSelf));
  EXPECT_FALSE(MayName(Served(7, kUser), Served(8, kUser), kSelf));
  // One program that says of both whose they are.
  EXPECT_TRUE(MayName(Served(7, kUser), Served(7, kUser), kSelf));
  EXPECT_FALSE(MayName(Served(7, kUser), Served(7, kOther), kSelf));
}

// A debug file names what its owner could have named anyway.
TEST(TrustTest, DebugFilesOfTheOwner) {
  EXPECT_TRUE(MayName(File(0), File(0), kSelf));
  EXPECT_TRUE(MayName(File(0), File(kUser), kSelf));
  EXPECT_TRUE(MayName(File(kSelf), File(0), kSelf));
  EXPECT_TRUE(MayName(File(kUser), File(kUser), kSelf));
  EXPECT_FALSE(MayName(File(kUser), File(0), kSelf));
  EXPECT_FALSE(MayName(File(kUser), File(kSelf), kSelf));
  EXPECT_FALSE(MayName(File(kUser), File(kOther), kSelf));
  EXPECT_FALSE(MayName(File(kUser), Served(1, kUser), kSelf));
}

// Users whom the namespace does not know are not one user.
TEST(TrustTest, UnknownUsersAreDifferent) {
  EXPECT_FALSE(MayName(File(kOverflow), File(kOverflow), kSelf));
  EXPECT_EQ(Judge(File(kOverflow), File(kOverflow), kSelf), Claim::kNeither);
}

// A debug file that others may write to is theirs.
TEST(TrustTest, DebugFilesOthersMayWrite) {
  EXPECT_FALSE(MayName(File(0, 0666), File(0), kSelf));
  EXPECT_FALSE(MayName(File(kUser, 0646), File(kUser), kSelf));
  EXPECT_TRUE(MayName(File(kUser, 0664), File(kUser), kSelf));
  FileOwner shared = File(kUser, 0664);
  shared.group = 50;
  EXPECT_FALSE(MayName(shared, File(kUser), kSelf));
  shared.group = 0;
  EXPECT_TRUE(MayName(shared, File(kUser), kSelf));
}

// The machine's file counts of those that have one build-id, in either order;
// two users' claims cancel each other.
TEST(TrustTest, JudgesClaims) {
  EXPECT_EQ(Judge(File(0), File(kUser), kSelf), Claim::kFirst);
  EXPECT_EQ(Judge(File(kUser), File(0), kSelf), Claim::kSecond);
  EXPECT_EQ(Judge(File(0), File(kSelf), kSelf), Claim::kBoth);
  EXPECT_EQ(Judge(File(kUser), File(kUser), kSelf), Claim::kBoth);
  EXPECT_EQ(Judge(File(kUser), File(kOther), kSelf), Claim::kNeither);
  EXPECT_EQ(Judge(Served(7, 0), File(0), kSelf), Claim::kSecond);
}

// A perf map is root's or that of the one user that the process has.
TEST(TrustTest, PerfMapsOfTheProcess) {
  EXPECT_TRUE(MayNameMemory(File(kUser), {kUser, kUser}));
  EXPECT_TRUE(MayNameMemory(File(0), {kUser, kUser}));
  EXPECT_TRUE(MayNameMemory(File(kUser, 0664), {kUser, kUser}));
  EXPECT_FALSE(MayNameMemory(File(kOther), {kUser, kUser}));
  EXPECT_FALSE(MayNameMemory(File(kUser), {0, 0}));
  EXPECT_FALSE(MayNameMemory(File(kUser, 0646), {kUser, kUser}));
  // Root, for a moment with the rights of a user.
  EXPECT_FALSE(MayNameMemory(File(kUser), {kUser, 0}));
  EXPECT_TRUE(MayNameMemory(File(0), {kUser, 0}));
}

// What the system says of a file is taken over.
TEST(TrustTest, ReadsTheOwner) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(::fchmod(::fileno(file), 0640), 0);
  const auto owner = OwnerOf(::fileno(file));
  ASSERT_TRUE(owner) << owner.error().message();
  EXPECT_EQ(owner->user, ::geteuid());
  EXPECT_EQ(owner->mode & 0777, 0640u);
  EXPECT_FALSE(owner->is_served);
  std::fclose(file);
  EXPECT_FALSE(OwnerOf(-1));
}

// Also of one that is only held.
TEST(TrustTest, ReadsTheOwnerOfAHeldFile) {
  const UniqueFd fd(::open("/", O_PATH | O_CLOEXEC));
  const auto owner = OwnerOf(fd.get());
  ASSERT_TRUE(owner) << owner.error().message();
  EXPECT_TRUE(S_ISDIR(owner->mode));
}

}  // namespace
}  // namespace ksym
