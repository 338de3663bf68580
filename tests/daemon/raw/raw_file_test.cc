// SPDX-License-Identifier: Apache-2.0
#include "daemon/raw/raw_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>

#include "tests/daemon/raw/raw_error.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ::testing::HasSubstr;

std::string Written(const RawCapture& capture) {
  std::string out;
  const ksym::Status status = WriteRawCapture(capture, out);
  EXPECT_TRUE(status.has_value());
  return out;
}

void Sort(std::vector<RawSample>& samples) {
  std::ranges::sort(samples, {}, [](const RawSample& s) {
    return std::tie(s.process, s.tid, s.comm, s.user_stack, s.kernel_stack,
                    s.kind, s.count, s.value);
  });
}

void ExpectEqual(const RawCapture& a, const RawCapture& b) {
  EXPECT_EQ(a.profile.metadata, b.profile.metadata);
  EXPECT_EQ(a.profile.accounting, b.profile.accounting);
  EXPECT_EQ(a.profile.samples, b.profile.samples);
  EXPECT_EQ(a.profile.stacks, b.profile.stacks);
  EXPECT_EQ(a.profile.wakers, b.profile.wakers);
  EXPECT_EQ(a.profile.runtime_frames, b.profile.runtime_frames);
  EXPECT_EQ(a.profile.kernel_changes, b.profile.kernel_changes);
  ASSERT_EQ(a.profile.images.size(), b.profile.images.size());
  for (const auto& [id, image] : a.profile.images) {
    ASSERT_TRUE(b.profile.images.contains(id));
    EXPECT_EQ(b.profile.images.at(id).id, id);
    EXPECT_EQ(image.mappings, b.profile.images.at(id).mappings);
  }
  EXPECT_EQ(a.kernel_symbols, b.kernel_symbols);
  EXPECT_EQ(a.kernel_symbols_state, b.kernel_symbols_state);
  EXPECT_EQ(a.vdso_image, b.vdso_image);
  EXPECT_EQ(a.modules, b.modules);
  EXPECT_EQ(a.kernel_parts, b.kernel_parts);
  EXPECT_EQ(a.thread_lives, b.thread_lives);
  EXPECT_EQ(a.thread_sums, b.thread_sums);
}

// Makes captures of every shape, extreme numbers included.
class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  RawCapture Capture() {
    RawCapture capture;
    RawProfile& profile = capture.profile;
    profile.metadata.version = Bytes(8);
    profile.metadata.kinds = Kinds();
    profile.metadata.start_unix_ns = Number();
    profile.metadata.duration_ns = Number();
    profile.metadata.hostname = Bytes(20);
    profile.metadata.command = Bytes(10);
    profile.metadata.kernel_release = "6.1";
    profile.metadata.architecture = "x86_64";
    profile.metadata.cpus = "0-3";
    profile.metadata.stack_store = "exact";
    profile.metadata.unwind = "auto";
    profile.metadata.max_stack_depth = static_cast<uint32_t>(Number());
    profile.metadata.kernel_table = {Number(), Number(), Number(), Number(),
                                     Number()};
    profile.metadata.unwind_tables = {Number(), Number(), Number(), Number(),
                                      Number(), Number(), Number()};
    profile.metadata.warnings.assign(Below(3), Bytes(30));
    profile.accounting.taken = Number();
    profile.accounting.emitted = Number();
    for (uint64_t& n : profile.accounting.lost_by_cause) n = Number();
    for (uint64_t& n : profile.accounting.damaged_by_cause) n = Number();
    for (uint64_t& n : profile.accounting.user_stack_ends) n = Number();
    profile.accounting.helped_by_frame_pointers = Number();
    profile.accounting.processes = {Number(), Number(), Number()};
    profile.accounting.time_enabled_ns = Number();
    profile.accounting.time_running_ns = Number();
    for (size_t i = Below(20); i > 0; --i) {
      profile.stacks.Add(
          StackIdValue(),
          RawStack{.frames = Numbers(Below(130)),
                   .end = static_cast<StackEnd>(Below(kStackEnds)),
                   .used_frame_pointers = Below(2) == 0});
    }
    for (size_t i = Below(3); i > 0; --i) AddMixedStack(profile);
    for (size_t i = Below(5); i > 0; --i) AddImage(profile);
    for (size_t i = Below(50); i > 0; --i) AddSample(profile);
    Sort(profile.samples);
    for (size_t i = Below(3); i > 0; --i) AddWaker(profile);
    for (size_t i = Below(5); i > 0; --i) AddRuntimeFrame(profile);
    for (size_t i = Below(4); i > 0; --i) {
      profile.kernel_changes.push_back(
          {.kind = static_cast<ksym::KernelSymbolChange::Kind>(Below(2)),
           .start = {Number() >> 1},
           .size = Number() >> 1,
           .name = Bytes(20),
           .module = Below(2) == 0 ? "bpf" : ""});
    }
    capture.kernel_symbols.resize(Below(100), std::byte{0x5a});
    capture.kernel_symbols_state = static_cast<KernelSymbolsState>(Below(5));
    capture.vdso_image = Bytes(100);
    for (size_t i = Below(4); i > 0; --i) {
      capture.modules.push_back(
          {.device_major = static_cast<uint32_t>(Number()),
           .device_minor = static_cast<uint32_t>(Number()),
           .inode = Number(),
           .path = Bytes(30),
           .build_id = Below(2) == 0 ? "0123456789abcdef" : "ff",
           .segments = {}});
      for (size_t j = Below(3); j > 0; --j) {
        capture.modules.back().segments.push_back(
            {Number() >> 1, Number() >> 1, Number() >> 1});
      }
    }
    for (size_t i = Below(3); i > 0; --i) {
      capture.kernel_parts.push_back(
          {Bytes(20), "abcdef", Number() >> 1, Number() >> 1});
    }
    for (size_t i = Below(3); i > 0; --i) {
      capture.thread_lives.push_back({.pid = static_cast<uint32_t>(3 - i),
                                      .tid = static_cast<uint32_t>(Number()),
                                      .ns = Number()});
    }
    if (Below(2) == 0) capture.thread_sums = Sums();
    return capture;
  }

 private:
  ThreadSums Sums() {
    ThreadSums sums;
    sums.count = 3 + Below(100);
    sums.sum = {Number(), Number(), Number()};
    for (size_t i = Below(3); i > 0; --i) {
      sums.threads.push_back({.pid = static_cast<uint32_t>(3 - i),
                              .tid = static_cast<uint32_t>(Number()),
                              .comm = Bytes(15),
                              .times = {Number(), Number(), Number()}});
    }
    return sums;
  }

  size_t Below(size_t limit) { return random_() % limit; }
  uint64_t Number() {
    const uint64_t bits = uint64_t{random_()} << 32 | random_();
    return Below(8) == 0 ? std::numeric_limits<uint64_t>::max()
                         : bits >> Below(64);
  }
  std::vector<uint64_t> Numbers(size_t n) {
    std::vector<uint64_t> numbers(n);
    std::ranges::generate(numbers, [this] { return Number(); });
    return numbers;
  }
  std::string Bytes(size_t limit) {
    std::string bytes(Below(limit + 1), '\0');
    std::ranges::generate(bytes,
                          [this] { return static_cast<char>(random_()); });
    return bytes;
  }
  StackId StackIdValue() { return std::max<StackId>(Number(), kFirstStackId); }
  ksym::ProcessId Process() {
    return {.pid = static_cast<uint32_t>(Below(5)),
            .exec_count = static_cast<uint32_t>(Below(2)),
            .start_ns = Below(2) == 0 ? 0 : Number()};
  }
  std::vector<SampleKind> Kinds() {
    std::vector<SampleKind> kinds = {
        EventKind("cpu-clock", Number(), Number())};
    while (Below(3) == 0 && kinds.size() < kMaxSampleKinds) {
      kinds.push_back({.name = Bytes(8),
                       .unit = Bytes(8),
                       .event = Bytes(8),
                       .frequency_hz = Number(),
                       .count_period = Number(),
                       .has_values = Below(2) == 0});
    }
    return kinds;
  }
  void AddMixedStack(RawProfile& profile) {
    std::vector<RawFrame> frames;
    for (size_t i = 1 + Below(20); i > 0; --i) {
      const auto kind = static_cast<RawFrameKind>(Below(3));
      frames.push_back({.kind = kind,
                        .unit = kind == kNativeCode ? 0 : Number(),
                        .value = Number()});
    }
    const std::string packed = PackMixedFrames(frames);
    profile.stacks.Add(StackIdValue(),
                       PackedStack{.frames = packed, .mixed = true});
  }
  void AddImage(RawProfile& profile) {
    const ksym::ProcessId id = Process();
    ksym::ProcessImage image;
    image.id = id;
    uint64_t at = Number() >> 8;
    for (size_t i = Below(6); i > 0; --i) {
      ksym::Mapping mapping;
      mapping.start = {at += Below(2) * 0x1000};
      mapping.end = {at += 0x1000};
      mapping.file_offset = {Number()};
      mapping.device_major = static_cast<uint32_t>(Number());
      mapping.device_minor = static_cast<uint32_t>(Number());
      mapping.inode = Number();
      mapping.path = Below(2) == 0 ? "/usr/lib/libc.so.6" : Bytes(10);
      image.mappings.push_back(mapping);
    }
    profile.images[id] = image;
  }
  void AddSample(RawProfile& profile) {
    RawSample sample;
    sample.process = Process();
    sample.tid = static_cast<uint32_t>(Number());
    sample.comm = Comm(Bytes(15));
    sample.user_stack = Below(2) == 0 ? Below(3) : StackIdValue();
    sample.kernel_stack =
        profile.stacks.empty() ? kNoStack : profile.stacks.ids().front();
    sample.count = Number();
    const std::vector<SampleKind>& kinds = profile.metadata.kinds;
    sample.kind = static_cast<SampleKindId>(Below(kinds.size()));
    if (kinds.size() > 1) sample.value = Number();
    profile.samples.push_back(sample);
  }

  void AddWaker(RawProfile& profile) {
    profile.wakers[Number()] = {
        .is_interrupt = Below(2) == 0,
        .process = Process(),
        .tid = static_cast<uint32_t>(Number()),
        .comm = Comm(Bytes(15)),
        .user_stack = Below(2) == 0 ? Below(3) : StackIdValue(),
        .kernel_stack = StackIdValue()};
  }

  void AddRuntimeFrame(RawProfile& profile) {
    profile.runtime_frames[Number()] = {
        .name = Bytes(20),
        .file = Bytes(20),
        .first_line = static_cast<uint32_t>(Number()),
        .line = static_cast<uint32_t>(Number()),
        .line_is_near = Below(2) == 0,
        .is_interpreted = Below(2) == 0,
        .caller = Number()};
  }

  std::mt19937 random_;
};

// What is written is read again, for captures of every shape; samples may
// name stacks whose frames never came and processes without an image.
TEST(RawFileTest, RoundTrip) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const RawCapture capture = Generator(seed).Capture();
    const auto read = ReadRawCapture(Written(capture));
    ASSERT_TRUE(read.has_value()) << read.error().message();
    ExpectEqual(capture, *read);
  }
}

// The order of the samples does not change the bytes.
TEST(RawFileTest, IsDeterministic) {
  RawCapture capture = Generator(6).Capture();
  ASSERT_GT(capture.profile.samples.size(), 1u);
  const std::string bytes = Written(capture);
  std::ranges::reverse(capture.profile.samples);
  EXPECT_EQ(Written(capture), bytes);
}

// Every proper prefix is refused, and the message names where it ends.
TEST(RawFileTest, NamesTheOffsetOfATruncation) {
  const std::string bytes = Written(Generator(5).Capture());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const ksym::Error error = ErrorOf(bytes.substr(0, size));
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error.message(),
                HasSubstr("ends at offset " + std::to_string(size)));
  }
  EXPECT_THAT(ErrorOf(bytes + "x").message(), HasSubstr("more bytes follow"));
}

// No single changed byte goes unnoticed.
TEST(RawFileTest, NoticesEveryChangedByte) {
  std::string bytes = Written(Generator(5).Capture());
  for (char& byte : bytes) {
    byte = static_cast<char>(byte ^ 0x10);
    EXPECT_FALSE(ReadRawCapture(bytes).has_value());
    byte = static_cast<char>(byte ^ 0x10);
  }
}

// Older programs can read a capture that has native code only.
TEST(RawFileTest, HasTheOldestVersionThatDoes) {
  RawCapture capture;
  capture.profile.stacks.Add(kFirstStackId, RawStack{.frames = {0x1000}});
  // A mixed stack without frames has none of another kind.
  capture.profile.stacks.Add(kFirstStackId + 2,
                             PackedStack{.frames = {}, .mixed = true});
  EXPECT_EQ(Written(capture)[8], 2);
  const std::string mixed = PackMixedFrames(
      std::vector<RawFrame>{{.kind = 1, .unit = 2, .value = 3}});
  capture.profile.stacks.Add(kFirstStackId + 1,
                             PackedStack{.frames = mixed, .mixed = true});
  EXPECT_EQ(Written(capture)[8], 3);
  capture.profile.metadata.kinds.push_back(EventKind("page-faults", 0, 1));
  EXPECT_EQ(Written(capture)[8], 4);
  capture.profile.wakers[1] = {};
  EXPECT_EQ(Written(capture)[8], 5);
}

// A later version is told apart from damage.
TEST(RawFileTest, RefusesLaterVersions) {
  std::string bytes = Written({});
  bytes[8] = 6;
  EXPECT_EQ(ErrorOf(bytes).code(), ErrorCode::kUnsupported);
}

// What cannot be read back is not written.
TEST(RawFileTest, RefusesToWriteInvalidCaptures) {
  std::string out;
  RawCapture capture;
  capture.profile.stacks.Add(kFirstStackId, RawStack());
  EXPECT_TRUE(WriteRawCapture(capture, out).has_value());
  capture.profile.stacks.Add(kFirstStackId - 1, RawStack());
  EXPECT_FALSE(WriteRawCapture(capture, out).has_value());
}

}  // namespace
}  // namespace profd
