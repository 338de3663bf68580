// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/stack_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/unwind/kernel_unwind_maps.h"
#include "daemon/unwind/table_builder.h"

namespace profd {
namespace {

constexpr uint64_t CopyOf(uint64_t cpu, uint64_t number) {
  return cpu << 48 | number;
}

class StackCopiesTest : public testing::Test {
 protected:
  void AddPiece(uint64_t copy, uint32_t bytes) {
    const auto record = std::make_unique<profile_piece_record>();
    record->header.type = PROFILE_RECORD_PIECE;
    record->copy = copy;
    record->bytes = bytes;
    copies_.AddPiece(*record, PROFILE_PIECE_RECORD_BYTES(size_t{bytes}));
  }
  void Add(uint64_t copy, uint32_t bytes, uint32_t pid) {
    profile_copy_record record = {};
    record.header.type = PROFILE_RECORD_COPY;
    record.copy = copy;
    record.key.tgid = pid;
    record.bytes = bytes;
    copies_.Add(record, sizeof(record));
  }
  std::vector<uint32_t> HintedPids() {
    std::vector<uint32_t> pids;
    for (const SampleHint& hint : copies_.Hints()) pids.push_back(hint.id.pid);
    return pids;
  }

  StackCopies copies_{Unwind::kAuto, 127};
};

using Pids = std::vector<uint32_t>;

// A stack that could not be read at all still has its innermost frame.
TEST_F(StackCopiesTest, NeedsNoPieces) {
  AddPiece(CopyOf(0, 1), 1024);  // of one whose own record did not come
  Add(CopyOf(0, 2), 0, 7);
  EXPECT_EQ(HintedPids(), (Pids{7}));
}

// Pieces of several CPUs come mixed; each copy gets its own.
TEST_F(StackCopiesTest, PutsPiecesTogetherByCpu) {
  AddPiece(CopyOf(0, 1), 16384);
  AddPiece(CopyOf(1, 1), 1024);
  AddPiece(CopyOf(0, 1), 2048);
  Add(CopyOf(1, 1), 1024, 7);
  Add(CopyOf(0, 1), 16384 + 2048, 8);
  EXPECT_EQ(HintedPids(), (Pids{7, 8}));
  EXPECT_EQ(copies_.waiting_bytes(), 16384u + 2048 + 1024);
}

// A copy whose pieces are not all there is none, nor are pieces without it.
TEST_F(StackCopiesTest, DropsWhatIsNotWhole) {
  AddPiece(CopyOf(0, 1), 1024);
  Add(CopyOf(0, 1), 2048, 7);
  Add(CopyOf(3, 1), 1024, 8);
  AddPiece(CopyOf(0, 2), 1024);
  AddPiece(CopyOf(0, 3), 1024);
  Add(CopyOf(0, 2), 1024, 9);
  EXPECT_EQ(HintedPids(), Pids());
  EXPECT_EQ(copies_.waiting_bytes(), 0u);
  Add(CopyOf(0, 3), 1024, 10);
  EXPECT_EQ(HintedPids(), Pids{10});
}

// Records that are shorter than they say are none.
TEST_F(StackCopiesTest, DropsShortRecords) {
  const auto piece = std::make_unique<profile_piece_record>();
  piece->copy = CopyOf(0, 1);
  piece->bytes = 1024;
  copies_.AddPiece(*piece, PROFILE_PIECE_RECORD_BYTES(1023));
  piece->bytes = sizeof(piece->stack) + 1;
  copies_.AddPiece(*piece, sizeof(*piece));
  Add(CopyOf(0, 1), 1024, 7);
  AddPiece(CopyOf(0, 2), 1024);
  profile_copy_record record = {};
  record.copy = CopyOf(0, 2);
  record.bytes = 1024;
  copies_.Add(record, sizeof(record) - 1);
  EXPECT_EQ(HintedPids(), Pids());
}

// Each is hinted at once.
TEST_F(StackCopiesTest, HintsOnce) {
  AddPiece(CopyOf(0, 1), 1024);
  Add(CopyOf(0, 1), 1024, 7);
  EXPECT_FALSE(copies_.HasWaiting(0));
  EXPECT_EQ(HintedPids(), Pids{7});
  EXPECT_EQ(HintedPids(), Pids());
  EXPECT_TRUE(copies_.HasWaiting(0));
  EXPECT_FALSE(copies_.HasWaiting(1));
}

// A process of generated code, whose stack is followed by its frame pointers.
class StackCopiesWalkTest : public testing::Test {
 protected:
  static constexpr uint32_t kPid = 7;
  static constexpr uint64_t kCode = 0x401000;
  static constexpr uint64_t kStack = 0x7ffc00000000;
  static constexpr uint32_t kBytes = 16 * PROFILE_COPY_CHUNK;

  StackCopiesWalkTest() {
    ksym::Mapping code;
    code.start = {kCode};
    code.end = {kCode + 0x1000};
    watch_.Apply({{100, ExecReport{kPid}}, {105, MapReport{kPid, code}}}, 200);
    // Frames at 0, 4 and 15 KiB.
    Frame(0, 4096, kCode + 0x10);
    Frame(4096, 15360, kCode + 0x20);
    Frame(15360, 0, kCode + 0x30);
  }
  void Frame(size_t at, size_t next, uint64_t return_address) {
    const uint64_t caller = next == 0 ? 0 : kStack + next;
    std::memcpy(stack_.data() + at, &caller, sizeof(caller));
    std::memcpy(stack_.data() + at + 8, &return_address,
                sizeof(return_address));
  }

  void AddPiece(size_t from, size_t to) {
    const auto record = std::make_unique<profile_piece_record>();
    record->copy = CopyOf(0, 1);
    record->address = kStack + from;
    record->bytes = static_cast<uint32_t>(to - from);
    std::copy_n(stack_.data() + from, to - from, record->stack);
    copies_.AddPiece(*record, PROFILE_PIECE_RECORD_BYTES(to - from));
    sent_ += to - from;
  }
  // Walks a copy of those pieces, of which `tried` bytes were to be read.
  StackId Walk(std::vector<std::pair<size_t, size_t>> pieces,
               size_t tried = kBytes) {
    for (const auto& [from, to] : pieces) AddPiece(from, to);
    return WalkWith(HeadOf(0, tried));
  }
  // The head of a copy with so many bytes beside those that AddPiece() has
  // sent.
  profile_copy_record HeadOf(uint32_t more_bytes, size_t tried) {
    profile_copy_record record = {};
    record.copy = CopyOf(0, 1);
    record.key.tgid = kPid;
    record.time_ns = 150;
    record.ip = kCode;
    record.registers[6] = kStack;
    record.registers[7] = kStack;
    record.address = kStack;
    record.end = kStack + tried;
    record.bytes = more_bytes;
    return record;
  }
  StackId WalkWith(profile_copy_record record) {
    record.bytes += static_cast<uint32_t>(sent_);
    sent_ = 0;
    copies_.Add(record, sizeof(record));
    copies_.Hints();
    copies_.Walk({watch_, tables_, records_, runtimes_});
    const auto counts = copies_.Take(0);
    return counts.size() == 1 ? counts.front().key.user_stack : 0;
  }
  // A copy of so many bytes waits.
  void AddWaiting(uint32_t pid, uint32_t tid, uint32_t bytes) {
    const uint64_t copy = CopyOf(0, ++last_copy_);
    const auto piece = std::make_unique<profile_piece_record>();
    piece->copy = copy;
    piece->address = kStack;
    piece->bytes = bytes;
    copies_.AddPiece(*piece, PROFILE_PIECE_RECORD_BYTES(size_t{bytes}));
    profile_copy_record record = {};
    record.copy = copy;
    record.key.tgid = pid;
    record.tid = tid;
    record.bytes = bytes;
    record.time_ns = 150;
    copies_.Add(record, sizeof(record));
    copies_.Hints();
  }
  // How many of each process's are walked to leave so many bytes.
  std::map<uint32_t, uint64_t> Shed(uint64_t max_bytes) {
    copies_.Shed({watch_, tables_, records_, runtimes_}, max_bytes);
    std::map<uint32_t, uint64_t> walked;
    for (const SampledCount& count : copies_.Take(0)) {
      walked[count.key.tgid] += count.count;
    }
    return walked;
  }
  StackId IdOf(size_t frames, StackEnd end) {
    RawStack stack = {
        .frames = {kCode, kCode + 0x10, kCode + 0x20, kCode + 0x30},
        .end = end,
        .used_frame_pointers = frames > 1};
    stack.frames.resize(frames);
    return records_.AddWalked(0, stack);
  }

  std::array<uint8_t, kBytes> stack_ = {};
  size_t sent_ = 0;
  uint64_t last_copy_ = 0;
  ProcessWatch watch_{[](const ksym::ProcessImage&) {},
                      [](const ksym::ProcessId&) {}, [] {}};
  UnwindTables tables_{
      {.maps =
           std::make_unique<KernelUnwindMaps>(UnwindMapFds{}, UnwindMapSizes{}),
       .queue = std::make_unique<TableBuilder>(BuildTablesWith(""))}};
  uint32_t runtime_known_ = 0;
  RuntimeRecords runtimes_{{}, &runtime_known_};
  StackRecords records_{127};
  StackCopies copies_{Unwind::kAuto, 127};
};

// Pages that could not be read are missed only where a frame needs them.
TEST_F(StackCopiesWalkTest, GoesOnBehindPagesThatCouldNotBeRead) {
  const StackId whole = IdOf(4, StackEnd::kZeroFramePointer);
  EXPECT_EQ(Walk({{0, kBytes}}), whole);
  EXPECT_EQ(Walk({{0, 1024}, {4096, 8192}, {12288, kBytes}}), whole);
  // A page that follows the piece before is none that is missing.
  EXPECT_EQ(Walk({{0, 4096}, {4096, 5120}, {15360, kBytes}}), whole);
  EXPECT_EQ(Walk({{0, 4096}, {8192, kBytes}}), IdOf(2, StackEnd::kBadRead));
  EXPECT_EQ(Walk({{4096, kBytes}}), IdOf(1, StackEnd::kBadRead));
  EXPECT_EQ(copies_.AdaptChunks(0), 64u);
}

// What was not tried is told apart, and tried the next time.
TEST_F(StackCopiesWalkTest, KnowsWhatWasNotTried) {
  const StackId beyond = IdOf(3, StackEnd::kBeyondCopy);
  EXPECT_EQ(Walk({{0, 8192}}, 8192), beyond);
  EXPECT_EQ(copies_.AdaptChunks(0), 128u);
  EXPECT_EQ(Walk({{0, 8192}}, 12288), beyond);
  EXPECT_EQ(copies_.AdaptChunks(0), 256u);
  EXPECT_EQ(Walk({{0, 8192}}, kBytes), IdOf(3, StackEnd::kBadRead));
}

// A stack that goes on elsewhere does not make copies larger.
TEST_F(StackCopiesWalkTest, DoesNotLookForOtherStacksInALargerCopy) {
  Frame(4096, uint64_t{PROFILE_COPY_BYTES} + 4096, kCode + 0x20);
  EXPECT_EQ(Walk({{0, kBytes}}), IdOf(3, StackEnd::kBeyondCopy));
  EXPECT_EQ(copies_.AdaptChunks(0), 64u);
}

// A stack of the program's own is followed to the thread's, and what was tried
// there counts as tried.
TEST_F(StackCopiesWalkTest, GoesOnAtTheHomeStack) {
  const uint64_t home = kStack + 0x40000;
  Frame(4096, home + 1024 - kStack, kCode + 0x20);
  const uint64_t end[2] = {0, kCode + 0x30};
  const auto piece = std::make_unique<profile_piece_record>();
  piece->copy = CopyOf(0, 1);
  piece->address = home;
  piece->bytes = 2048;
  std::memcpy(piece->stack + 1024, end, sizeof(end));
  profile_copy_record record = HeadOf(2048, 8192);
  record.home_address = home;
  record.home_end = home + 2048;
  AddPiece(0, 8192);
  copies_.AddPiece(*piece, PROFILE_PIECE_RECORD_BYTES(size_t{2048}));
  EXPECT_EQ(WalkWith(record), IdOf(4, StackEnd::kZeroFramePointer));
  // Nothing of it could be read.
  record.bytes = 0;
  AddPiece(0, 8192);
  EXPECT_EQ(WalkWith(record), IdOf(3, StackEnd::kBadRead));
  EXPECT_EQ(copies_.AdaptChunks(0), 64u);
  // It was not tried, though a larger copy would have.
  record.home_address = home + 1536;
  AddPiece(0, 8192);
  EXPECT_EQ(WalkWith(record), IdOf(3, StackEnd::kBeyondCopy));
  EXPECT_EQ(copies_.AdaptChunks(0), 128u);
}

// A home stack below the other one, which is sent after it, is in nobody's way.
TEST_F(StackCopiesWalkTest, TakesAHomeStackThatLiesBelow) {
  const auto piece = std::make_unique<profile_piece_record>();
  piece->copy = CopyOf(0, 1);
  piece->address = kStack - 0x40000;
  piece->bytes = 2048;
  profile_copy_record record = HeadOf(2048, kBytes);
  record.home_address = piece->address;
  record.home_end = piece->address + 2048;
  AddPiece(0, kBytes);
  copies_.AddPiece(*piece, PROFILE_PIECE_RECORD_BYTES(size_t{2048}));
  EXPECT_EQ(WalkWith(record), IdOf(4, StackEnd::kZeroFramePointer));
}

// Where there is no room for all that wait, a process keeps what another one
// may keep too, and so do its threads; the oldest stay.
TEST_F(StackCopiesWalkTest, ShedsFromThoseThatHaveMost) {
  for (int i = 0; i < 10; ++i) AddWaiting(7, 70, 4096);
  AddWaiting(8, 80, 4096);
  AddWaiting(8, 81, 1024);
  EXPECT_EQ(Shed(uint64_t{11} * 4096 + 1024), (std::map<uint32_t, uint64_t>()));
  EXPECT_EQ(Shed(uint64_t{4} * 4096), (std::map<uint32_t, uint64_t>{{7, 8}}));
  EXPECT_EQ(copies_.waiting_bytes(), 3u * 4096 + 1024);
  // Two of 82's go: 80 and 81 have less.
  for (int i = 0; i < 4; ++i) AddWaiting(8, 82, 4096);
  EXPECT_EQ(Shed(uint64_t{5} * 4096 + 1024),
            (std::map<uint32_t, uint64_t>{{8, 2}}));
  EXPECT_EQ(copies_.waiting_bytes(), 5u * 4096 + 1024);
  EXPECT_EQ(Shed(0), (std::map<uint32_t, uint64_t>{{7, 2}, {8, 4}}));
  EXPECT_EQ(copies_.waiting_bytes(), 0u);
}

// Fewer bytes when the ring was full, more when stacks were cut off.
TEST_F(StackCopiesTest, AdaptsTheirSize) {
  EXPECT_EQ(copies_.AdaptChunks(0), 64u);
  EXPECT_EQ(copies_.AdaptChunks(5), 32u);
  for (int i = 0; i < 9; ++i) copies_.AdaptChunks(1);
  EXPECT_EQ(copies_.AdaptChunks(1), 8u);
  EXPECT_EQ(copies_.AdaptChunks(0), 8u);
}

}  // namespace
}  // namespace profd
