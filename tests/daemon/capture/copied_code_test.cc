// SPDX-License-Identifier: Apache-2.0
// Walks of copied stacks through the code of a JVM that is this process.

#include "daemon/capture/copied_code.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "bpf/profile_abi.h"
#include "daemon/base/now_ns.h"
#include "daemon/capture/sampled_count.h"
#include "ksym/runtime/hotspot/layout.h"
#include "ksym/unwind/stack_walk.h"

namespace profd {
namespace {

constexpr size_t kHeapBytes = 4096;
constexpr size_t kSegmentBytes = 128;
constexpr size_t kHeadBytes = 512;
constexpr uint64_t kFrameWords = 4;
constexpr uint64_t kCallerIp = 0x401000;

class CopiedCodeTest : public testing::Test {
 protected:
  CopiedCodeTest() {
    ksym::HotspotLayout layout;
    layout.block_bytes = 16;
    layout.blob_frame_size = 8;
    layout.blob_frame_complete = 12;
    layout.blob_code_begin = 16;
    layout.blob_code_end = 24;
    layout.nmethod_compile_id = 32;
    copy_.key.tgid = static_cast<uint32_t>(getpid());
    copy_.key.start_ns = 1;
    copy_.tid = copy_.key.tgid;
    copy_.time_ns = NowNs();
    // One blob has the whole heap.
    for (size_t i = 0; i < segments_.size(); ++i) {
      segments_[i] = static_cast<uint8_t>(i);
    }
    const uint64_t blob = AddressOf(heap_) + layout.block_bytes;
    code_ = blob + kHeadBytes;
    Set(blob, AddressOf(name_));
    Set(blob + 8, static_cast<uint32_t>(kFrameWords));
    Set(blob + 16, code_);
    Set(blob + 24, AddressOf(heap_) + kHeapBytes);
    Set(blob + 32, uint32_t{7});
    // A call ends at the place that is returned to.
    Set(code_ + 0x40 - 5, uint8_t{0xe8});
    codes_.Add(ProcessOf(copy_.key), layout,
               {{.begin = {AddressOf(heap_)},
                 .end = {AddressOf(heap_) + kHeapBytes},
                 .segments = {AddressOf(segments_)},
                 .segment_shift = 7}});
  }

  template <typename T>
  static uint64_t AddressOf(const T& object) {
    return reinterpret_cast<uint64_t>(object.data());
  }
  template <typename T>
  void Set(uint64_t address, T value) {
    std::memcpy(&heap_.at(address - AddressOf(heap_)), &value, sizeof(value));
  }

  // From a frame that is returned to at that place of the code.
  ksym::CodeStep StepAt(uint64_t place) {
    ksym::CodeSteps* steps = codes_.Begin(copy_);
    EXPECT_NE(steps, nullptr);
    const ksym::CodeFrame frame = {.number = 1,
                                   .at = {code_ + place - 1},
                                   .sp = 0x7000,
                                   .fp = {},
                                   .is_interrupted = false,
                                   .registers = {}};
    const auto step =
        steps->Step(frame, [](uint64_t) { return std::optional(kCallerIp); });
    EXPECT_TRUE(step);
    return *step;
  }

  CopiedCode codes_;
  profile_copy_record copy_ = {};
  uint64_t code_ = 0;

 private:
  std::array<std::byte, kHeapBytes> heap_ = {};
  std::array<uint8_t, kHeapBytes / kSegmentBytes> segments_ = {};
  std::array<char, 8> name_ = {'n', 'm', 'e', 't', 'h', 'o', 'd', 0};
};

// The stack of a thread that went on is followed where the code calls, and
// counts where the walk got to its outermost frame.
TEST_F(CopiedCodeTest, FollowsWhatIsCertain) {
  const auto step = StepAt(0x40);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->ip.value, kCallerIp);
  EXPECT_EQ(step->sp, 0x7000 + 8 * kFrameWords);
  const auto found = codes_.End(copy_, ksym::StackEnd::kOutermost);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().index, 0x3fu);
  EXPECT_EQ(codes_.copies().read, 1u);
  EXPECT_EQ(codes_.sleepers().read, 0u);
}

TEST_F(CopiedCodeTest, DropsWhatIsNot) {
  ASSERT_TRUE(StepAt(0x40));
  EXPECT_FALSE(codes_.End(copy_, ksym::StackEnd::kNoMapping));
  EXPECT_EQ(codes_.copies().uncertain, 1u);
  EXPECT_FALSE(StepAt(0x41));
}

// Code may be freed and made anew by then.
TEST_F(CopiedCodeTest, EndsWhereTheStackIsOld) {
  copy_.time_ns -= 600'000'000;
  EXPECT_FALSE(StepAt(0x40));
  const auto found = codes_.End(copy_, ksym::StackEnd::kNoTable);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->empty());
  EXPECT_EQ(codes_.copies().too_old, 1u);
  EXPECT_EQ(codes_.copies().read, 0u);
}

// Code that was read for a stack is read anew for a later one.
TEST_F(CopiedCodeTest, ReadsCodeOfTheTimeBehindTheStack) {
  ASSERT_TRUE(StepAt(0x40));
  ASSERT_TRUE(codes_.End(copy_, ksym::StackEnd::kOutermost));
  Set(code_ - kHeadBytes + 8, uint32_t{2});
  EXPECT_EQ(StepAt(0x40)->sp, 0x7000 + 8 * kFrameWords);
  copy_.time_ns = NowNs();
  EXPECT_EQ(StepAt(0x40)->sp, 0x7000 + 8 * 2);
}

// Where a walk over all threads found it, its switches tell whether it is still
// there.
TEST_F(CopiedCodeTest, KnowsSleepersByTheirSwitches) {
  copy_.thread = 0x1000;
  copy_.runs = 0xffffffff;
  // A thread that is there may be in code that calls nothing.
  ASSERT_TRUE(StepAt(0x41));
  EXPECT_FALSE(codes_.End(copy_, ksym::StackEnd::kOutermost));
  EXPECT_EQ(codes_.sleepers().went_on, 1u);
}

}  // namespace
}  // namespace profd
