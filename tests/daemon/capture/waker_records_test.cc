// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/waker_records.h"

#include <gtest/gtest.h>

namespace profd {
namespace {

waker_record RecordOf(uint32_t set, uint64_t id, uint32_t pid) {
  waker_record record = {};
  record.header.type = PROFILE_RECORD_WAKER;
  record.header.set = set;
  record.id = id;
  record.key.tgid = pid;
  return record;
}

// A thread that goes on in the interval after the one in which it was woken has
// its waker; later ones do not.
TEST(WakerRecordsTest, KeepsAnIntervalForTheNext) {
  WakerRecords wakers;
  const waker_record record = RecordOf(0, 20, 7);
  wakers.Add(record, sizeof(record) - 1);
  EXPECT_FALSE(wakers.HasAny(0));
  wakers.Add(record, sizeof(record));
  wakers.Add(0, 21, RecordOf(0, 21, 8).key);
  ASSERT_NE(wakers.Find(0, 20), nullptr);
  EXPECT_EQ(wakers.Find(0, 20)->tgid, 7u);
  EXPECT_EQ(wakers.Find(1, 20), nullptr);
  EXPECT_TRUE(wakers.HasAny(0));
  wakers.EndInterval(0);
  EXPECT_FALSE(wakers.HasAny(0));
  ASSERT_NE(wakers.Find(1, 21), nullptr);
  EXPECT_EQ(wakers.Find(1, 21)->tgid, 8u);
  wakers.EndInterval(1);
  EXPECT_EQ(wakers.Find(0, 20), nullptr);
}

}  // namespace
}  // namespace profd
