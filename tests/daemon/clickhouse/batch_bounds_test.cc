// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/clickhouse/batch.h"
#include "ksym/base/bounded_name.h"
#include "tests/daemon/clickhouse/row_decoder.h"
#include "tests/daemon/output/test_profile.h"

namespace profd::clickhouse {
namespace {

// A batch that waits on the disk is read back, and one that is damaged refused.
TEST(BatchFileTest, RoundTrip) {
  const Batch batch = MakeBatch(ExampleProfile(1), {}, "r");
  const std::string packed = PackBatch(batch);
  const auto read = UnpackBatch(packed);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, batch);
  for (size_t size = 0; size < packed.size(); ++size) {
    EXPECT_FALSE(UnpackBatch(packed.substr(0, size))) << size;
  }
  size_t taken = 0;
  for (size_t i = 0; i < packed.size(); ++i) {
    std::string damaged = packed;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    const auto other = UnpackBatch(damaged);
    // A bit that zstd has no use for changes nothing.
    if (other) {
      EXPECT_EQ(*other, batch) << i;
      ++taken;
    }
  }
  EXPECT_LE(taken, 8u);
  EXPECT_FALSE(UnpackBatch(""));
}

// Names of any length and any bytes.
TEST(BatchBoundsTest, CutsNames) {
  TestProfile p;
  p.Add({.comm = "a\nb",
         .cgroup = "/system.slice/" + std::string(5000, 'u') + ".service",
         .user = {p.User(std::string(60'000, 'x'),
                         "/" + std::string(60'000, 'y'))}});
  const Batch batch = MakeBatch(std::move(p).Finish(), {}, "r");
  const auto rows = DecodeSamples(batch.samples);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].texts[4], "a?b");
  for (const std::string& text : rows[0].texts) {
    EXPECT_LE(text.size(), ksym::kMaxShownBytes);
  }
  const StackRow stack = DecodeStack(batch.stacks.at(0).row);
  EXPECT_LE(stack.names.at(0).size(), ksym::kMaxShownBytes);
  EXPECT_LE(stack.modules.at(0).size(), ksym::kMaxShownBytes);
  EXPECT_TRUE(stack.names[0].starts_with("xxx"));
}

// Beyond the bound stacks go, and no sample does.
TEST(BatchBoundsTest, BoundsStacks) {
  TestProfile p;
  std::vector<FrameId> frames;
  for (int i = 0; i < 100; ++i) {
    frames.push_back(p.User(std::string(900, 'n') + std::to_string(i)));
  }
  constexpr uint64_t kStacks = 500;  // of 90 kB each
  for (uint64_t i = 0; i < kStacks; ++i) {
    std::vector<FrameId> stack = frames;
    stack.push_back(p.User("root" + std::to_string(i)));
    p.Add({.user = stack});
  }
  const Batch batch = MakeBatch(std::move(p).Finish(), {}, "r");
  size_t bytes = 0;
  for (const Batch::Stack& stack : batch.stacks) bytes += stack.row.size();
  EXPECT_LE(bytes, kMaxStackBytes);
  EXPECT_GT(bytes, kMaxStackBytes / 2);
  uint64_t sum = 0;
  uint64_t not_kept = 0;
  const StackRow last = DecodeStack(batch.stacks.back().row);
  EXPECT_EQ(last.names.at(0), kNotKept);
  for (const SampleRow& row : DecodeSamples(batch.samples)) {
    sum += row.count;
    if (row.stack == last.stack) not_kept += row.count;
  }
  EXPECT_EQ(sum, kStacks);
  EXPECT_EQ(not_kept, kStacks - (batch.stacks.size() - 1));
  EXPECT_EQ(batch.not_kept, not_kept);
  EXPECT_TRUE(UnpackBatch(PackBatch(batch)));
}

// The same of the samples' own texts.
TEST(BatchBoundsTest, BoundsSamples) {
  TestProfile p;
  const FrameId frame = p.User("f");
  constexpr uint64_t kSamples = 40'000;  // of 1 kB each
  for (uint64_t i = 0; i < kSamples; ++i) {
    p.Add({.user = {frame},
           .labels = {{.key = std::string(kPodLabel),
                       .value = std::string(950, 'p') + std::to_string(i)}}});
  }
  const Batch batch = MakeBatch(std::move(p).Finish(), {}, "r");
  EXPECT_LE(batch.samples.size(), kMaxSampleBytes + 4096);
  uint64_t sum = 0;
  uint64_t not_kept = 0;
  for (const SampleRow& row : DecodeSamples(batch.samples)) {
    sum += row.count;
    if (row.texts[7].empty()) not_kept += row.count;
  }
  EXPECT_EQ(sum, kSamples);
  EXPECT_GT(not_kept, 0u);
  EXPECT_LT(not_kept, kSamples / 2);
  EXPECT_EQ(batch.not_kept, not_kept);
}

}  // namespace
}  // namespace profd::clickhouse
