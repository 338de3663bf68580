// SPDX-License-Identifier: Apache-2.0
#include "daemon/dump/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace profd {
namespace {

constexpr std::string_view kMaps =
    "1000-3000 rw-s 00004000 00:01 77                    /dev/zero (deleted)\n"
    "5000-6000 rw-p 00000000 00:01 77                    /private\n"
    "8000-9000 rw-s 00005000 00:02 77                    /other/device\n"
    "no line\n"
    "9000-8000 rw-s 00000000 00:01 77\n"
    "a000-b000 r--s 00000000 00:01 78";

// Only mappings that a process can share with others count.
TEST(SharedMemory, ParsesSharedMappingsAlone) {
  const auto mappings = ParseSharedMappings(kMaps);
  ASSERT_EQ(mappings.size(), 3u);
  EXPECT_EQ(mappings[0].start, 0x1000u);
  EXPECT_EQ(mappings[0].end, 0x3000u);
  EXPECT_EQ(mappings[0].offset, 0x4000u);
  EXPECT_EQ(mappings[0].device, "00:01");
  EXPECT_EQ(mappings[0].inode, 77u);
  EXPECT_EQ(mappings[2].inode, 78u);
}

// A byte is shared where the same byte of the same file is mapped.
TEST(SharedMemory, ComparesFilesAndOffsets) {
  const auto one = ParseSharedMappings(kMaps);
  const auto two =
      ParseSharedMappings("f000-10000 rw-s 00005000 00:01 77 /dev/zero\n");
  EXPECT_TRUE(HasByteOf(one, two, 0xf000));
  EXPECT_TRUE(HasByteOf(one, two, 0xffff));
  EXPECT_FALSE(HasByteOf(one, two, 0x10000));
  EXPECT_TRUE(HasByteOf(two, one, 0x2000));
  EXPECT_FALSE(HasByteOf(two, one, 0x1fff));
  EXPECT_FALSE(HasByteOf(two, one, 0x3000));
  EXPECT_FALSE(HasByteOf(two, one, 0x8000));
}

// This process shares with itself what it has mapped so.
TEST(SharedMemory, ReadsProcesses) {
  void* const shared =
      ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  void* const own =
      ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  ASSERT_NE(own, MAP_FAILED);
  SharedMemory memory;
  const auto pid = static_cast<uint32_t>(::getpid());
  EXPECT_TRUE(memory.AreShared(pid, pid, reinterpret_cast<uintptr_t>(shared)));
  EXPECT_FALSE(memory.AreShared(pid, pid, reinterpret_cast<uintptr_t>(own)));
  EXPECT_FALSE(
      memory.AreShared(4'000'000, pid, reinterpret_cast<uintptr_t>(shared)));
  ::munmap(shared, 4096);
  ::munmap(own, 4096);
}

}  // namespace
}  // namespace profd
