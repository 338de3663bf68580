// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "daemon/profile/accounting.h"
#include "daemon/raw/raw_file.h"

namespace profd {
namespace {

std::string ReadWhole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string StackText(const RawProfile& profile, StackId id) {
  if (id < kFirstStackId) return fmt::format("state {}", id);
  const RawStack stack = profile.stacks.Get(id);
  std::string text(Name(stack.end));
  if (stack.used_frame_pointers) text += " by frame pointers";
  ForEachFrame(profile.stacks.GetPacked(id), [&](const RawFrame& frame) {
    if (frame.kind != kNativeCode) {
      text += fmt::format(" kind {} {:x}:", frame.kind, frame.unit);
    }
    text += fmt::format(" {:x}", frame.value);
  });
  return text;
}

std::string KindText(const SampleKind& kind) {
  return fmt::format("{} in {}: {}, {} Hz, every {}{}\n", kind.name, kind.unit,
                     kind.event, kind.frequency_hz, kind.count_period,
                     kind.has_values ? ", has values" : "");
}

std::string WakerText(const RawProfile& profile, WakerId id,
                      const RawWaker& waker) {
  return fmt::format("waker {}: {} {} {}{}\n  {}\n  {}\n", id,
                     waker.comm.view(), waker.process.pid, waker.tid,
                     waker.is_interrupt ? ", an interrupt" : "",
                     StackText(profile, waker.user_stack),
                     StackText(profile, waker.kernel_stack));
}

// What the capture says of its samples.
std::string Described(const RawCapture& capture) {
  const RawProfile& profile = capture.profile;
  const CaptureMetadata& metadata = profile.metadata;
  std::string text;
  for (const SampleKind& kind : metadata.kinds) text += KindText(kind);
  text += fmt::format("{} taken, {} emitted\n", profile.accounting.taken,
                      profile.accounting.emitted);
  for (const RawSample& sample : profile.samples) {
    text += fmt::format("{} {} {}: {} {}, {}\n  {}\n  {}\n", sample.comm.view(),
                        sample.process.pid, sample.tid, sample.count,
                        metadata.kinds[sample.kind].name, sample.value,
                        StackText(profile, sample.user_stack),
                        StackText(profile, sample.kernel_stack));
  }
  for (const auto& [id, waker] : profile.wakers) {
    text += WakerText(profile, id, waker);
  }
  for (const ThreadLife& life : capture.thread_lives) {
    text += fmt::format("{} {} lived {} ns\n", life.pid, life.tid, life.ns);
  }
  for (const auto& [id, image] : profile.images) {
    for (const ksym::Mapping& mapping : image.mappings) {
      text += fmt::format("{:x} {:x} {:x} {}\n", mapping.start.value,
                          mapping.end.value, mapping.file_offset.value,
                          mapping.path.str());
    }
  }
  return text;
}

class RecordedRawTest : public ::testing::TestWithParam<const char*> {};

// A capture that a program of another version recorded is read as it was then.
TEST_P(RecordedRawTest, IsReadAsItWas) {
  const std::string path =
      std::string(KSYM_TEST_DATA_DIR) + "/raw/" + GetParam();
  const auto capture = ReadRawCapture(ReadWhole(path + ".raw"));
  ASSERT_TRUE(capture.has_value()) << capture.error().message();
  const std::string actual = Described(*capture);
  if (std::getenv("KSYM_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path + ".txt", std::ios::binary) << actual;
  }
  EXPECT_EQ(actual, ReadWhole(path + ".txt"))
      << "(to accept: KSYM_UPDATE_GOLDEN=1)";
}

INSTANTIATE_TEST_SUITE_P(Versions, RecordedRawTest,
                         ::testing::Values("version_1", "version_2",
                                           "version_3", "version_4",
                                           "version_5"));

}  // namespace
}  // namespace profd
