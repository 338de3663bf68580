// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/perf_map.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/bounded_name.h"

namespace ksym {
namespace {

std::string NameAt(PerfMap& map, uint64_t address) {
  const auto match = map.Find({address});
  return match ? std::string(match->name) : "";
}

// A function covers its first and its last byte, and its name is the rest of
// the line.
TEST(PerfMapTest, CoversHalfOpenRanges) {
  PerfMap map;
  map.Append("1000 10 one two;three\n0x2000 0x8 b\n");
  EXPECT_EQ(NameAt(map, 0xfff), "");
  EXPECT_EQ(NameAt(map, 0x1000), "one two;three");
  EXPECT_EQ(NameAt(map, 0x100f), "one two;three");
  EXPECT_EQ(NameAt(map, 0x1010), "");
  EXPECT_EQ(NameAt(map, 0x2007), "b");
  EXPECT_EQ(map.Find({0x2004})->start.value, 0x2000u);
}

// The newest of several overlapping entries wins, and the rest of the older
// ones stays.
TEST(PerfMapTest, NewestOverlappingEntryWins) {
  PerfMap map;
  map.Append("1000 100 old\n1040 20 new\n");
  EXPECT_EQ(NameAt(map, 0x103f), "old");
  EXPECT_EQ(NameAt(map, 0x1040), "new");
  EXPECT_EQ(NameAt(map, 0x105f), "new");
  EXPECT_EQ(NameAt(map, 0x1060), "old");
  map.Append("fff 200 newest\n");
  EXPECT_EQ(NameAt(map, 0x1040), "newest");
}

// Whatever the order, each address has the last line's name that covers it.
TEST(PerfMapTest, AgreesWithALinearSearch) {
  std::mt19937 random(7);
  struct Line {
    uint64_t start, end;
    std::string name;
  };
  std::vector<Line> lines;
  PerfMap map;
  for (int i = 0; i < 300; ++i) {
    const uint64_t start = random() % 500;
    const uint64_t size = 1 + random() % 60;
    lines.push_back({start, start + size, "f" + std::to_string(i)});
    char text[64];
    std::snprintf(text, sizeof(text), "%lx %lx f%d\n", start, size, i);
    map.Append(text);
    if (i % 50 != 49) continue;
    for (uint64_t address = 0; address < 600; ++address) {
      const auto found =
          std::find_if(lines.rbegin(), lines.rend(), [address](const Line& l) {
            return l.start <= address && address < l.end;
          });
      EXPECT_EQ(NameAt(map, address), found == lines.rend() ? "" : found->name)
          << address;
    }
  }
}

// A line torn anywhere is whole again once the rest is there, and does not
// count before.
TEST(PerfMapTest, TornLastLineWaits) {
  constexpr std::string_view kText = "1000 10 first\n2000 10 second\n";
  for (size_t cut = 0; cut <= kText.size(); ++cut) {
    PerfMap map;
    map.Append(kText.substr(0, cut));
    EXPECT_EQ(NameAt(map, 0x2000), cut == kText.size() ? "second" : "");
    map.Append(kText.substr(cut));
    EXPECT_EQ(NameAt(map, 0x1000), "first") << cut;
    EXPECT_EQ(NameAt(map, 0x2000), "second") << cut;
    EXPECT_EQ(map.malformed_lines(), 0u) << cut;
  }
}

// A bad line costs itself only.
TEST(PerfMapTest, SkipsMalformedLines) {
  PerfMap map;
  map.Append(
      "\nx\n1000\n1000 10\n1000 10 \n1000 0 zero\n"
      "ffffffffffffffff 2 wraps\n-1 5 sign\n3000 1 good\n");
  EXPECT_EQ(map.malformed_lines(), 8u);
  EXPECT_EQ(map.size(), 1u);
  EXPECT_EQ(NameAt(map, 0x3000), "good");
}

// A line without an end takes bounded memory.
TEST(PerfMapTest, BoundsTheTornLine) {
  PerfMap map;
  const std::string part(1 << 16, 'x');
  for (int i = 0; i < 100; ++i) map.Append(part);
  map.Append("\n1000 10 good\n");
  EXPECT_EQ(NameAt(map, 0x1000), "good");
  EXPECT_EQ(map.malformed_lines(), 1u);
}

// A line as long as may be is read, and one byte more makes it malformed.
TEST(PerfMapTest, BoundsTheLine) {
  for (const size_t size :
       {PerfMap::kMaxLineBytes, PerfMap::kMaxLineBytes + 1}) {
    PerfMap map;
    std::string line = "1000 10 ";
    line.resize(size, 'n');
    map.Append(line + "\n");
    EXPECT_EQ(map.size(), size == PerfMap::kMaxLineBytes ? 1u : 0u);
    EXPECT_EQ(map.malformed_lines(), 1 - map.size());
  }
}

// Long names take no more room than names are shown with, and stay different.
TEST(PerfMapTest, CutsLongNames) {
  PerfMap map;
  const std::string name(60'000, 'n');
  for (int i = 0; i < 100; ++i) {
    map.Append(std::to_string(1000 + 10 * i) + " 10 " + name +
               std::to_string(i) + "\n");
  }
  EXPECT_EQ(NameAt(map, 0x1000).size(), kMaxShownBytes);
  EXPECT_NE(NameAt(map, 0x1000), NameAt(map, 0x1010));
  EXPECT_LE(map.memory_bytes(), 4 * 100 * kMaxShownBytes);
}

// Reading stops at the bound on entries.
TEST(PerfMapTest, BoundsTheEntries) {
  PerfMap map;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "1000 1 f\n";
  for (size_t i = 0; i < PerfMap::kMaxEntries / 1000 + 2; ++i) map.Append(text);
  EXPECT_TRUE(map.full());
  EXPECT_EQ(map.size(), PerfMap::kMaxEntries);
}

// The perf map of this very process.
class PerfMapFileTest : public testing::Test {
 protected:
  PerfMapFileTest()
      : path_("/tmp/perf-" + std::to_string(::getpid()) + ".map") {
    process_.pid = static_cast<uint32_t>(::getpid());
    ::unlink(path_.c_str());
  }
  ~PerfMapFileTest() override {
    ::unlink(path_.c_str());
    ::unlink(Other().c_str());
  }

  std::string Other() const { return path_ + ".other"; }
  void Write(const std::string& path, std::string_view text) const {
    std::ofstream(path, std::ios::app) << text;
  }
  ErrorCode FailureToOpen() const {
    const auto file = PerfMapFile::Open(process_);
    EXPECT_FALSE(file);
    return file ? ErrorCode::kIo : file.error().code();
  }

  std::string path_;
  ProcessId process_;
};

// The map is read, and read on when it has grown.
TEST_F(PerfMapFileTest, ReadsWhatIsAppended) {
  Write(path_, "1000 10 first\n2000 1");
  auto file = PerfMapFile::Open(process_);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Refresh());
  EXPECT_EQ(file->Find({0x1000})->name, "first");
  EXPECT_FALSE(file->Find({0x2000}));
  Write(path_, "0 second\n");
  ASSERT_TRUE(file->Refresh());
  EXPECT_EQ(file->Find({0x200f})->name, "second");
}

// A map that was cut short is read anew.
TEST_F(PerfMapFileTest, StartsOverWhenTheFileShrinks) {
  Write(path_, "1000 10 first\n2000 10 second\n");
  auto file = PerfMapFile::Open(process_);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Refresh());
  ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
  Write(path_, "1000 10 new\n");
  ASSERT_TRUE(file->Refresh());
  EXPECT_EQ(file->Find({0x1000})->name, "new");
  EXPECT_FALSE(file->Find({0x2000}));
}

// Without a map there is nothing to find, for a process that is gone neither.
TEST_F(PerfMapFileTest, TellsThatThereIsNone) {
  EXPECT_EQ(FailureToOpen(), ErrorCode::kNotFound);
  process_.pid = 0x7fffffff;
  EXPECT_EQ(FailureToOpen(), ErrorCode::kNotFound);
}

// A link is not followed, wherever it leads.
TEST_F(PerfMapFileTest, RefusesALink) {
  Write(Other(), "1000 10 first\n");
  ASSERT_EQ(::symlink(Other().c_str(), path_.c_str()), 0);
  FailureToOpen();
}

// A FIFO neither blocks nor is read.
TEST_F(PerfMapFileTest, RefusesAFifo) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(FailureToOpen(), ErrorCode::kUnsupported);
}

// Another user's file could name our functions as it likes.
TEST_F(PerfMapFileTest, RefusesAnotherUsersFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  Write(path_, "1000 10 first\n");
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(FailureToOpen(), ErrorCode::kInvalid);
}

// So could everybody who may write to ours.
TEST_F(PerfMapFileTest, RefusesAFileThatEverybodyMayWrite) {
  Write(path_, "1000 10 first\n");
  EXPECT_TRUE(PerfMapFile::Open(process_));
  ASSERT_EQ(::chmod(path_.c_str(), 0646), 0);
  EXPECT_EQ(FailureToOpen(), ErrorCode::kInvalid);
}

// A file from before the process began belongs to another one.
TEST_F(PerfMapFileTest, RefusesAStaleFile) {
  Write(path_, "1000 10 first\n");
  timespec now = {};
  ASSERT_EQ(::clock_gettime(CLOCK_BOOTTIME, &now), 0);
  process_.start_ns = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000;
  EXPECT_TRUE(PerfMapFile::Open(process_));
  timespec times[2] = {};
  ASSERT_EQ(::clock_gettime(CLOCK_REALTIME, &times[1]), 0);
  times[1].tv_sec -= 60;
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  EXPECT_EQ(FailureToOpen(), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace ksym
