#include "daemon/capture/stack_copies.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

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
