// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/process_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <latch>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/base/unique_fd.h"

namespace ksym {
namespace {

constexpr std::string_view kLine =
    "7f1c8e026000-7f1c8e17b000 r-xp 00026000 fd:0a 1234       "
    "              /usr/lib/libc.so.6\n";

std::vector<Mapping> Parse(std::string_view text, size_t malformed = 0) {
  size_t counted = 0;
  auto mappings = ParseMaps(text, &counted);
  EXPECT_EQ(counted, malformed) << text;
  return mappings;
}

// Each field of a line lands where it belongs.
TEST(ParseMapsTest, ReadsAllFields) {
  const auto mappings = Parse(kLine);
  ASSERT_EQ(mappings.size(), 1u);
  const Mapping expected = {.start = {0x7f1c8e026000},
                            .end = {0x7f1c8e17b000},
                            .file_offset = {0x26000},
                            .device_major = 0xfd,
                            .device_minor = 0x0a,
                            .inode = 1234,
                            .path = "/usr/lib/libc.so.6"};
  EXPECT_EQ(mappings[0], expected);
}

// Only what can be executed is kept, whatever else is allowed.
TEST(ParseMapsTest, KeepsExecutableMappingsOnly) {
  const auto mappings = Parse(
      "1000-2000 r--p 00000000 00:00 0 \n"
      "2000-3000 rwxp 00000000 00:00 0 \n"
      "3000-4000 rw-s 00000000 00:00 0 /a\n"
      "4000-5000 --xp 00000000 00:00 0                  [vsyscall]\n");
  ASSERT_EQ(mappings.size(), 2u);
  EXPECT_EQ(mappings[0].start.value, 0x2000u);
  EXPECT_EQ(mappings[0].path, "");
  EXPECT_EQ(mappings[1].path, "[vsyscall]");
}

// Paths may hold spaces, marks and escaped newlines.
TEST(ParseMapsTest, DecodesPaths) {
  const auto mappings = Parse(
      "1000-2000 r-xp 00000000 00:01 7 /a b/c (deleted)\n"
      "2000-3000 r-xp 00000000 00:01 8 /x\\012y\\012\n"
      "3000-4000 r-xp 00000000 00:01 9 /back\\slash\\01\n");
  ASSERT_EQ(mappings.size(), 3u);
  EXPECT_EQ(mappings[0].path, "/a b/c (deleted)");
  EXPECT_EQ(mappings[1].path, "/x\ny\n");
  EXPECT_EQ(mappings[2].path, "/back\\slash\\01");
}

// The last line needs no newline; no text has no mappings.
TEST(ParseMapsTest, TakesTextWithoutFinalNewline) {
  EXPECT_EQ(Parse(kLine.substr(0, kLine.size() - 1)).size(), 1u);
  EXPECT_TRUE(Parse("").empty());
}

// Every line that is not of the form is counted, and the others are kept.
TEST(ParseMapsTest, SkipsAndCountsMalformedLines) {
  for (const std::string_view line :
       {"", "x", "1000-2000", "1000-2000 r-xp", "1000-2000 r-xp ",
        "1000-2000 r-xp 0 00:00", "1000-2000 r-xp 0 0000 0 /a",
        "1000-2000 r-xpp 00000000 00:00 0 /a", "1000 r-xp 00000000 00:00 0 /a",
        "2000-2000 r-xp 00000000 00:00 0 /a",
        "2000-1000 r-xp 00000000 00:00 0 /a",
        "g000-h000 r-xp 00000000 00:00 0 /a",
        "1000-2000 r-xp 00000000 00:00 x /a",
        "1000-2000 r-?p 00000000 00:00 0 /a",
        "1000-11112222333344445 r-xp 00000000 00:00 0 /a",
        "1000-2000 r-xp 00000000 fffffffff:00 0 /a"}) {
    const std::string text = std::string(line) + "\n" + std::string(kLine);
    EXPECT_EQ(Parse(text, 1).size(), 1u) << line;
  }
}

// Mappings that overlap or go back would break the search: they are refused,
// while those that touch are fine.
TEST(ParseMapsTest, KeepsMappingsSortedAndDisjoint) {
  const auto mappings = Parse(
      "2000-3000 r-xp 00000000 00:00 0 /a\n"
      "3000-4000 r-xp 00000000 00:00 0 /b\n"
      "3fff-5000 r-xp 00000000 00:00 0 /c\n"
      "1000-2000 r-xp 00000000 00:00 0 /d\n",
      2);
  ASSERT_EQ(mappings.size(), 2u);
  EXPECT_EQ(mappings[1].path, "/b");
}

// A mapping holds its first and its last byte, not the ones beside them.
TEST(ProcessImageTest, FindIsHalfOpen) {
  ProcessImage image;
  image.mappings = Parse(
      "2000-3000 r-xp 00000000 00:00 0 /a\n"
      "3000-4000 r-xp 00000000 00:00 0 /b\n"
      "6000-7000 r-xp 00000000 00:00 0 /c\n");
  const auto path = [&image](uint64_t address) -> std::string {
    const Mapping* mapping = image.Find({address});
    return mapping == nullptr ? "" : mapping->path;
  };
  EXPECT_EQ(path(0), "");
  EXPECT_EQ(path(0x1fff), "");
  EXPECT_EQ(path(0x2000), "/a");
  EXPECT_EQ(path(0x2fff), "/a");
  EXPECT_EQ(path(0x3000), "/b");
  EXPECT_EQ(path(0x3fff), "/b");
  EXPECT_EQ(path(0x4000), "");
  EXPECT_EQ(path(0x5fff), "");
  EXPECT_EQ(path(0x6fff), "/c");
  EXPECT_EQ(path(0x7000), "");
  EXPECT_EQ(path(UINT64_MAX), "");
  EXPECT_EQ(ProcessImage().Find({0}), nullptr);
}

// This process's own code lies in its own mappings.
TEST(ReadMapsTest, ReadsThisProcess) {
  ProcessImage image;
  auto mappings = ReadMaps(static_cast<uint32_t>(::getpid()));
  ASSERT_TRUE(mappings);
  image.mappings = std::move(*mappings);
  const Mapping* own = image.Find({reinterpret_cast<uint64_t>(&ParseMaps)});
  ASSERT_NE(own, nullptr);
  EXPECT_THAT(own->path, testing::EndsWith("process_test"));
  EXPECT_NE(own->inode, 0u);
}

// A process that is gone is not found; one that is dead but not reaped has no
// mappings any more.
TEST(ReadMapsTest, TellsThatAProcessIsGone) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT),
            0);
  const auto zombie = ReadMaps(static_cast<uint32_t>(child));
  EXPECT_TRUE(!zombie || zombie->empty());
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto gone = ReadMaps(static_cast<uint32_t>(child));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), ErrorCode::kNotFound);
}

// Whichever way the kernel tells, the mappings are those of /proc/PID/maps.
TEST(ReadMapsTest, AgreesWithTheText) {
  // A path with a newline, which the text escapes and the other way does not.
  std::string name = testing::TempDir() + "ksym\nmaps_XXXXXX";
  const UniqueFd fd(::mkstemp(name.data()));
  ASSERT_TRUE(fd.valid());
  ASSERT_EQ(::ftruncate(fd.get(), 8192), 0);
  void* memory =
      ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd.get(), 4096);
  ASSERT_NE(memory, MAP_FAILED);
  ::unlink(name.c_str());
  const auto text = ReadFile("/proc/self/maps", size_t{1} << 24);
  ASSERT_TRUE(text);
  auto expected = ParseMaps(*text, nullptr);
  auto maps = ReadMaps(static_cast<uint32_t>(::getpid()));
  ASSERT_TRUE(maps) << maps.error().message();
  std::erase_if(expected, [](auto& m) { return m.path == "[vsyscall]"; });
  std::erase_if(*maps, [](auto& m) { return m.path == "[vsyscall]"; });
  EXPECT_EQ(*maps, expected);
  ::munmap(memory, 4096);
}

// Those of a process with many threads are asked for in another way.
TEST(ReadMapsTest, ReadsAProcessOfManyThreads) {
  const auto before = ReadMaps(static_cast<uint32_t>(::getpid()));
  ASSERT_TRUE(before);
  std::latch end(1);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 600; ++i) threads.emplace_back([&] { end.wait(); });
  const auto maps = ReadMaps(static_cast<uint32_t>(::getpid()));
  end.count_down();
  ASSERT_TRUE(maps) << maps.error().message();
  EXPECT_EQ(*maps, *before);
}

// A process that is gone has none; of a thread that ended others tell.
TEST(ReadMapsTest, FindsALivingThread) {
  const auto gone = ReadMaps(0x7fffffff);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), ErrorCode::kNotFound);
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread([] { ::pause(); }).detach();
    ::syscall(SYS_exit, 0);  // this thread only
  }
  const auto pid = static_cast<uint32_t>(child);
  const std::string stat = "/proc/" + std::to_string(pid) + "/stat";
  while (ReadFile(stat, 4096).value_or("").find(") Z ") == std::string::npos) {
    ::usleep(1000);
  }
  EXPECT_EQ(OtherThreads(pid).size(), 1u);
  const auto maps = ReadMaps(pid);
  ASSERT_TRUE(maps);
  EXPECT_FALSE(maps->empty());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// Two mappings show the same bytes if file and place agree; of memory without
// a file if neither is the kernel's own.
TEST(HaveSameBytesTest, ComparesFileAndPlace) {
  Mapping file;
  file.start = {0x2000};
  file.end = {0x4000};
  file.file_offset = {0x1000};
  file.inode = 5;
  Mapping part = file;
  part.start = {0x3000};
  part.file_offset = {0x2000};
  EXPECT_TRUE(HaveSameBytes(file, part));
  part.file_offset = {0x3000};
  EXPECT_FALSE(HaveSameBytes(file, part));
  part = file;
  part.device_minor = 1;
  EXPECT_FALSE(HaveSameBytes(file, part));
  Mapping anonymous;
  EXPECT_FALSE(HaveSameBytes(file, anonymous));
  Mapping heap;
  heap.path = "[heap]";
  EXPECT_TRUE(HaveSameBytes(anonymous, heap));
  for (const char* path : {"[vdso]", "[replaced]"}) {
    Mapping named;
    named.path = path;
    EXPECT_TRUE(HaveSameBytes(named, named));
    EXPECT_FALSE(HaveSameBytes(named, anonymous));
  }
}

// What a collector has of mappings of 16 bytes each, which are at 0, 16, ...
std::vector<Mapping> Collected(const std::vector<std::string>& paths,
                               const MapsLimits& limits) {
  MapsCollector collector(limits);
  for (size_t i = 0; i < paths.size(); ++i) {
    Mapping mapping;
    mapping.start = {16 * i};
    mapping.end = {16 * i + 16};
    mapping.inode = 7;
    mapping.path = paths[i];
    if (!collector.Add(std::move(mapping))) break;
  }
  return std::move(collector).Take();
}

// As many mappings as may be are kept; with one more there is one that stands
// for all others.
TEST(MapsCollectorTest, BoundsMappings) {
  const std::vector<std::string> most(kMaxMappings, "/a");
  EXPECT_EQ(Collected(most, {}).size(), kMaxMappings);
  EXPECT_EQ(Collected(most, {}).back().path, "/a");
  std::vector<std::string> more = most;
  more.resize(2 * kMaxMappings, "/b");
  const auto kept = Collected(more, {});
  ASSERT_EQ(kept.size(), kMaxMappings + 1);
  EXPECT_EQ(kept.back().path, kTooLargePath);
  EXPECT_EQ(kept.back().inode, 0u);
  EXPECT_EQ(kept.back().start.value, 16 * kMaxMappings);
  EXPECT_EQ(kept.back().end.value, uint64_t{1} << 63);
}

// Paths are kept as long as they have room together; equal ones take room once,
// and what comes behind one that has none may have some.
TEST(MapsCollectorTest, BoundsPaths) {
  const std::string long_path = "/" + std::string(2999, 'x');
  const auto kept =
      Collected({long_path, long_path, long_path + "y", "/short", "/123", "/4"},
                {.path_bytes = 3010});
  ASSERT_EQ(kept.size(), 6u);
  EXPECT_EQ(kept[1].path, long_path);
  EXPECT_TRUE(kept[1].path.IsSharedWith(kept[0].path));
  EXPECT_EQ(kept[2].path, kTooLargePath);
  EXPECT_EQ(kept[2].inode, 0u);
  EXPECT_EQ(kept[3].path, "/short");
  EXPECT_EQ(kept[3].inode, 7u);
  EXPECT_EQ(kept[4].path, "/123");
  EXPECT_EQ(kept[5].path, kTooLargePath);
}

// A live process's mappings are read within the bounds.
TEST(ReadMapsTest, KeepsTheBounds) {
  const auto pid = static_cast<uint32_t>(::getpid());
  const auto two = ReadMaps(pid, {.mappings = 2});
  ASSERT_TRUE(two);
  ASSERT_EQ(two->size(), 3u);
  EXPECT_EQ((*two)[2].path, kTooLargePath);
  EXPECT_GE((*two)[2].start, (*two)[1].end);
  const auto nameless = ReadMaps(pid, {.path_bytes = 0});
  ASSERT_TRUE(nameless);
  for (const Mapping& mapping : *nameless) {
    EXPECT_TRUE(mapping.path.empty() || mapping.path == kTooLargePath);
  }
}

}  // namespace
}  // namespace ksym
