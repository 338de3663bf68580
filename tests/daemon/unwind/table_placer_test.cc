// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/table_placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/unwind/unwind_pieces.h"
#include "tests/daemon/unwind/fake_maps.h"

namespace profd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint32_t kShard = UNWIND_SHARD_SLOTS;
constexpr uint32_t kBytesPerRow = 16;

class TablePlacerTest : public testing::Test {
 protected:
  TablePlacerTest() { maps_.shard_slots = kShard; }

  static TableFile FileWith(uint32_t rows) {
    auto table = std::make_shared<ksym::UnwindTable>();
    table->size = uint64_t{kBytesPerRow} * rows;
    for (uint32_t i = 0; i < rows; ++i) {
      table->rows.push_back({.pc = kBytesPerRow * i, .cfa_offset = 1});
    }
    TableFile file;
    file.rows = std::move(table);
    return file;
  }

  // Leaves free runs of those lengths and nothing else.
  void LeaveFree(const std::vector<uint32_t>& gaps) {
    uint32_t left = kShard;
    std::vector<UnwindMaps::Place> places;
    for (const uint32_t gap : gaps) {
      places.push_back(Take(gap));
      Take(1);
      left -= gap + 1;
    }
    Take(left);
    for (const auto& place : places) maps_.FreeSlots(place);
    maps_.Recycle();
    taken_before_ = maps_.used;
  }

  UnwindMaps::Place Take(uint32_t slots) {
    UnwindPiece piece;
    piece.index.resize(slots);
    return maps_.Add(piece)->value();
  }

  // The pieces follow each other over all of the code.
  static void ExpectWhole(const TableFile& file) {
    uint64_t covered = 0;
    for (const UnwindFile::Piece& piece : file.table.pieces) {
      EXPECT_EQ(piece.begin, covered);
      covered = piece.end;
    }
    EXPECT_GE(covered, file.rows->size);
  }

  // Nothing of the file stays in the maps.
  void ExpectNothing(const TableFile& file) {
    EXPECT_THAT(file.table.pieces, IsEmpty());
    EXPECT_EQ(placer_.bytes(), 0u);
    maps_.Recycle();
    EXPECT_EQ(maps_.used, taken_before_);
  }

  FakeMaps maps_;
  int turns_ = 0;
  const std::function<void()> meanwhile_ = [this] { ++turns_; };
  TablePlacer placer_{maps_, meanwhile_};
  uint64_t taken_before_ = 0;
};

// A table that fits lies in one piece, and is gone when it is dropped.
TEST_F(TablePlacerTest, PlacesATableWhole) {
  TableFile file = FileWith(40'000);
  ASSERT_TRUE(placer_.Place(file));
  ASSERT_EQ(file.table.pieces.size(), 1u);
  ExpectWhole(file);
  const UnwindFile::Piece& piece = file.table.pieces[0];
  EXPECT_EQ(piece.place.count, 40'000u + piece.rows_at);  // index, then rows
  EXPECT_EQ(placer_.bytes(), uint64_t{piece.place.count} * 8);
  EXPECT_EQ(placer_.Drop(file), maps_.used);
  EXPECT_EQ(turns_, 1);
  ExpectNothing(file);
}

// The builder's thread has cut the table already.
TEST_F(TablePlacerTest, UsesPiecesThatWereCut) {
  TableFile file = FileWith(100);
  file.pieces = CutIntoPieces(file.rows->rows, file.rows->size, 64);
  const size_t pieces = file.pieces.size();
  ASSERT_GT(pieces, 1u);
  ASSERT_TRUE(placer_.Place(file));
  EXPECT_EQ(file.table.pieces.size(), pieces);
  EXPECT_THAT(file.pieces, IsEmpty());
  ExpectWhole(file);
}

// Room for a large table is made at once: each shard by itself would cost a
// grace period. The table is cut once for both.
TEST_F(TablePlacerTest, PreparesRoomForAllPieces) {
  maps_.max_shards = 4;
  maps_.room_is_ready = false;
  TableFile file = FileWith(150'000);
  EXPECT_FALSE(placer_.PrepareRoom(file));
  ASSERT_EQ(file.pieces.size(), 3u);
  EXPECT_THAT(maps_.prepared,
              ElementsAre(file.pieces[0].slots(), file.pieces[1].slots(),
                          file.pieces[2].slots()));
  EXPECT_EQ(maps_.used, 0u);
  maps_.room_is_ready = true;
  EXPECT_TRUE(placer_.PrepareRoom(file));
  ASSERT_TRUE(placer_.Place(file));
  EXPECT_EQ(file.table.pieces.size(), 3u);
  EXPECT_EQ(turns_, 3);
  ExpectWhole(file);
}

// Between other tables there is room for quarters.
TEST_F(TablePlacerTest, PlacesQuartersBetweenOthers) {
  LeaveFree({17'000, 16'384, 12'000});
  TableFile file = FileWith(40'000);
  ASSERT_TRUE(placer_.Place(file));
  EXPECT_EQ(file.table.pieces.size(), 3u);
  for (const UnwindFile::Piece& piece : file.table.pieces) {
    EXPECT_LE(piece.place.count, kShard / 4);
  }
  ExpectWhole(file);
  placer_.Drop(file);
  ExpectNothing(file);
}

// What is left after the quarters goes into quarters of those, down to a
// sixteenth of a shard.
TEST_F(TablePlacerTest, PlacesSixteenths) {
  LeaveFree({16'500, 4'096, 4'096, 4'096});
  TableFile file = FileWith(26'000);
  ASSERT_TRUE(placer_.Place(file));
  EXPECT_EQ(file.table.pieces.size(), 4u);
  EXPECT_GT(file.table.pieces[0].place.count, kShard / 16);
  EXPECT_LE(file.table.pieces[1].place.count, kShard / 16);
  ExpectWhole(file);
}

// Room in smaller pieces than that is none, however much it is.
TEST_F(TablePlacerTest, RefusesCrumbs) {
  LeaveFree(std::vector<uint32_t>(15, 4'000));
  TableFile file = FileWith(40'000);
  EXPECT_FALSE(placer_.Place(file));
  EXPECT_THAT(placer_.refusal(), IsEmpty());  // the kernel had nothing to do
  ExpectNothing(file);
}

// Where room ends in the middle of a table, the rest of it is taken out: half
// of a table would be a wrong one.
TEST_F(TablePlacerTest, TakesHalvesBack) {
  LeaveFree({17'000, 5'000});
  TableFile file = FileWith(40'000);
  EXPECT_FALSE(placer_.Place(file));
  EXPECT_GT(turns_, 3);  // a quarter and a sixteenth had a place
  ExpectNothing(file);
  // What it had can be used again.
  TableFile small = FileWith(16'000);
  EXPECT_TRUE(placer_.Place(small));
  ExpectWhole(small);
}

// So it is when the kernel refuses, which is told.
TEST_F(TablePlacerTest, TakesBackWhatTheKernelCutShort) {
  maps_.max_shards = 4;
  maps_.adds_that_work = 1;
  TableFile file = FileWith(150'000);
  EXPECT_FALSE(placer_.Place(file));
  EXPECT_EQ(placer_.refusal(), "no memory");
  ExpectNothing(file);
}

}  // namespace
}  // namespace profd
