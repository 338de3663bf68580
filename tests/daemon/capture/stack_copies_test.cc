#include "daemon/capture/stack_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

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
    sent_ = 0;
    for (const auto& [from, to] : pieces) AddPiece(from, to);
    profile_copy_record record = {};
    record.copy = CopyOf(0, 1);
    record.key.tgid = kPid;
    record.time_ns = 150;
    record.ip = kCode;
    record.registers[6] = kStack;
    record.registers[7] = kStack;
    record.address = kStack;
    record.end = kStack + tried;
    record.bytes = static_cast<uint32_t>(sent_);
    copies_.Add(record, sizeof(record));
    copies_.Hints();
    copies_.Walk({watch_, tables_, records_});
    const auto counts = copies_.Take(0);
    return counts.size() == 1 ? counts.front().key.user_stack : 0;
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
  ProcessWatch watch_{[](const ksym::ProcessImage&) {},
                      [](const ksym::ProcessId&) {}};
  UnwindTables tables_{UnwindMaps({}, {}), BuildTablesWith("")};
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
