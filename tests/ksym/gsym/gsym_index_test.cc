// SPDX-License-Identifier: Apache-2.0
#include "ksym/gsym/gsym_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "ksym/gsym/gsym_lookup.h"
#include "tests/ksym/gsym/gsym_samples.h"

namespace ksym {
namespace {

constexpr uint64_t kStart = 0x4000;
constexpr uint64_t kSize = 0x800;

bool IsSameFrame(const GsymFrame& a, const GsymFrame& b) {
  return a.function == b.function && a.offset == b.offset &&
         a.directory == b.directory && a.file == b.file && a.line == b.line;
}

// A function with thousands of rows and calls inlined at random, each within
// its caller's code.
class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  FunctionBatch Make() {
    batch_.files = {{}, {"/src", "a.cc"}, {"/src", "b.h"}};
    for (uint64_t at = kStart; at < kStart + kSize; at += 1 + Below(4)) {
      batch_.lines.push_back({at, static_cast<uint32_t>(1 + Below(2)),
                              static_cast<uint32_t>(1 + Below(200))});
    }
    AddCalls({kStart, kStart + kSize}, 1);
    batch_.functions = {{"large",
                         {kStart, kStart + kSize},
                         0,
                         static_cast<uint32_t>(batch_.lines.size()),
                         0,
                         static_cast<uint32_t>(batch_.inlines.size())}};
    return std::move(batch_);
  }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }

  void AddCalls(AddressRange in, uint32_t depth) {
    if (depth > 5) return;
    for (uint64_t at = in.start; in.end - at > 8;) {
      const uint64_t start = at + Below(8);
      const uint64_t end = start + 1 + Below(in.end - start);
      const auto range = static_cast<uint32_t>(batch_.ranges.size());
      batch_.ranges.push_back({start, end});
      names_.push_back("call" + std::to_string(names_.size()));
      // Some calls are from nowhere and add no frame.
      batch_.inlines.push_back({names_.back(), depth,
                                static_cast<uint32_t>(Below(3)),
                                static_cast<uint32_t>(Below(90)), range, 1});
      AddCalls({start, end}, depth + 1);
      at = end;
    }
  }

  std::mt19937 random_;
  std::deque<std::string> names_;  // those in the batch are views of these
  FunctionBatch batch_;
};

// Each address, three times: at the second an index is made, then it is used.
void ExpectSameAnswers(const std::vector<std::byte>& bytes, GsymIndex& index) {
  const auto file = GsymFile::Parse(bytes);
  ASSERT_TRUE(file);
  GsymAnswer plain;
  GsymAnswer indexed;
  for (uint64_t at = kStart - 1; at <= kStart + kSize; ++at) {
    const auto expected = LookupGsym(*file, {at}, plain);
    ASSERT_TRUE(expected);
    for (int i = 0; i < 3; ++i) {
      const auto found = LookupGsym(*file, {at}, index, indexed);
      ASSERT_TRUE(found);
      ASSERT_EQ(*found, *expected);
      ASSERT_TRUE(std::ranges::equal(plain.frames, indexed.frames, IsSameFrame))
          << at;
      ASSERT_EQ(plain.refs.size(), plain.frames.size());
      ASSERT_TRUE(std::ranges::equal(plain.refs, indexed.refs));
    }
  }
}

// With an index every address has the same answer as without one, in both
// versions and byte orders.
TEST(GsymIndex, SameAnswers) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    Maker maker(seed);
    const FunctionBatch batch = maker.Make();
    ASSERT_GT(batch.inlines.size(), 10u);
    const GsymWriterOptions options = {
        .version = seed % 2 == 0 ? GsymVersion::k1 : GsymVersion::k2,
        .byte_order = seed < 2 ? std::endian::little : std::endian::big};
    const auto bytes = WriteGsym(batch, options);
    const auto file = GsymFile::Parse(bytes);
    ASSERT_TRUE(file);
    GsymIndex index(*file);
    ExpectSameAnswers(bytes, index);
    EXPECT_GT(index.memory_bytes(), 1000u);
  }
}

// Inlined calls that overlap are looked up one after the other, first come, as
// without an index.
TEST(GsymIndex, CallsThatOverlap) {
  Maker maker(1);
  FunctionBatch batch = maker.Make();
  batch.ranges = {{kStart + 16, kStart + 64}, {kStart + 48, kStart + 96}};
  batch.inlines = {{"first", 1, 1, 11, 0, 1}, {"second", 1, 1, 12, 1, 1}};
  batch.functions[0].inline_count = 2;
  const auto bytes = WriteGsym(batch);
  const auto file = GsymFile::Parse(bytes);
  ASSERT_TRUE(file);
  GsymIndex index(*file);
  ExpectSameAnswers(bytes, index);
  EXPECT_EQ(index.memory_bytes(), 4 * file->function_count());  // no index
}

// Over its bound an index does not grow, and answers stay the same.
TEST(GsymIndex, Bound) {
  Maker maker(2);
  const auto bytes = WriteGsym(maker.Make());
  const auto file = GsymFile::Parse(bytes);
  ASSERT_TRUE(file);
  GsymIndex index(*file, 0);
  ExpectSameAnswers(bytes, index);
  EXPECT_EQ(index.memory_bytes(), 4 * file->function_count());
}

}  // namespace
}  // namespace ksym
