// SPDX-License-Identifier: Apache-2.0
#include "daemon/raw/raw_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <protozero/pbf_writer.hpp>
#include <random>
#include <string>

#include "daemon/raw/raw_file_layout.h"

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

ksym::Error ErrorOf(const std::string& file) {
  const auto capture = ReadRawCapture(file);
  EXPECT_FALSE(capture.has_value());
  return capture.has_value() ? ksym::Error(ErrorCode::kInvalid, "")
                             : capture.error();
}

// A file whose header is right and whose payload is ours to choose.
std::string FileOf(const std::string& payload) {
  return raw_file::Header(payload) + payload;
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
    for (size_t i = Below(4); i > 0; --i) {
      profile.kernel_changes.push_back(
          {.kind = static_cast<ksym::KernelSymbolChange::Kind>(Below(2)),
           .start = {Number() >> 1},
           .size = Number() >> 1,
           .name = Bytes(20),
           .module = Below(2) == 0 ? "bpf" : ""});
    }
    capture.kernel_symbols.resize(Below(100), std::byte{0x5a});
    capture.kernel_symbols_state = static_cast<KernelSymbolsState>(Below(4));
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
    return capture;
  }

 private:
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
    sample.comm = Bytes(15);
    sample.user_stack = Below(2) == 0 ? Below(3) : StackIdValue();
    sample.kernel_stack =
        profile.stacks.empty() ? kNoStack : profile.stacks.ids().front();
    sample.count = Number();
    const std::vector<SampleKind>& kinds = profile.metadata.kinds;
    sample.kind = static_cast<SampleKindId>(Below(kinds.size()));
    if (kinds.size() > 1) sample.value = Number();
    profile.samples.push_back(sample);
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
  EXPECT_EQ(Written(capture)[8], 2);
  const std::string mixed = PackMixedFrames(
      std::vector<RawFrame>{{.kind = 1, .unit = 2, .value = 3}});
  capture.profile.stacks.Add(kFirstStackId + 1,
                             PackedStack{.frames = mixed, .mixed = true});
  EXPECT_EQ(Written(capture)[8], 3);
  capture.profile.metadata.kinds.push_back(EventKind("page-faults", 0, 1));
  EXPECT_EQ(Written(capture)[8], 4);
}

// A later version is told apart from damage.
TEST(RawFileTest, RefusesLaterVersions) {
  std::string bytes = Written({});
  bytes[8] = 5;
  EXPECT_EQ(ErrorOf(bytes).code(), ErrorCode::kUnsupported);
}

// What cannot be read back is not written.
TEST(RawFileTest, RefusesToWriteInvalidCaptures) {
  std::string out;
  RawCapture capture;
  capture.profile.samples.resize(1);
  capture.profile.samples[0].comm.assign(15, 'a');
  EXPECT_TRUE(WriteRawCapture(capture, out).has_value());
  capture.profile.samples[0].comm.assign(16, 'a');
  EXPECT_FALSE(WriteRawCapture(capture, out).has_value());
  capture.profile.samples.clear();
  capture.profile.stacks.Add(kFirstStackId, RawStack());
  EXPECT_TRUE(WriteRawCapture(capture, out).has_value());
  capture.profile.stacks.Add(kFirstStackId - 1, RawStack());
  EXPECT_FALSE(WriteRawCapture(capture, out).has_value());
}

struct MalformedCase {
  const char* what;
  void (*build)(protozero::pbf_writer& capture);
};

std::string Process(uint32_t pid, const std::string& mappings) {
  std::string process;
  protozero::pbf_writer writer(process);
  writer.add_uint32(1, pid);
  writer.add_uint32(4, 1);
  return process + mappings;
}

std::string MappingField(uint64_t start, uint64_t size, uint64_t path) {
  std::string mapping;
  protozero::pbf_writer writer(mapping);
  writer.add_uint64(1, start);
  writer.add_uint64(2, size);
  writer.add_uint64(7, path);
  std::string field;
  protozero::pbf_writer(field).add_message(5, mapping);
  return field;
}

std::string Samples(std::array<uint64_t, 6> values, size_t columns) {
  std::string samples;
  protozero::pbf_writer writer(samples);
  for (uint32_t i = 0; i < columns; ++i) {
    writer.add_packed_uint64(i + 1, &values[i], &values[i] + 1);
  }
  return samples;
}

std::string Stack(uint64_t id) {
  std::string stack;
  protozero::pbf_writer(stack).add_fixed64(1, id);
  return stack;
}

std::string Frames(const std::string& packed) {
  std::string frames;
  protozero::pbf_writer(frames).add_bytes(2, packed);
  return frames;
}

// Files with a right checksum that break a rule of the format are refused.
TEST(RawFileTest, RefusesBrokenRules) {
  using Writer = protozero::pbf_writer;
  const MalformedCase cases[] = {
      {"32-bit",
       [](Writer& w) {
         std::string process;
         Writer(process).add_uint64(1, uint64_t{1} << 32);
         w.add_message(5, process);
       }},
      {"ascend",
       [](Writer& w) {
         w.add_message(5, Process(1, ""));
         w.add_message(5, Process(1, ""));
       }},
      {"ascend", [](Writer& w) { w.add_message(4, Stack(kFirstStackId - 1)); }},
      {"ascend",
       [](Writer& w) {
         w.add_message(4, Stack(~uint64_t{0}));
         w.add_message(4, Stack(kFirstStackId));
       }},
      {"twice",
       [](Writer& w) {
         w.add_message(4,
                       Stack(kFirstStackId) + Frames("\x01") + Frames("\x02"));
       }},
      {"varint too long",
       [](Writer& w) {
         const std::string frame = std::string(10, '\x80') + '\x01';
         w.add_message(4, Stack(kFirstStackId) + Frames(frame));
       }},
      {"end of buffer",
       [](Writer& w) {
         w.add_message(4, Stack(kFirstStackId) + Frames("\x01\x80"));
       }},
      {"not whole",
       [](Writer& w) {
         std::string stack = Stack(kFirstStackId);
         Writer(stack).add_bytes(7, "\x01\x01\x02");
         w.add_message(4, stack);
       }},
      {"twice",
       [](Writer& w) {
         std::string stack = Stack(kFirstStackId) + Frames("\x01");
         Writer(stack).add_bytes(7, "\x01\x01\x02\x03");
         w.add_message(4, stack);
       }},
      {"overlap",
       [](Writer& w) {
         w.add_bytes(3, "");
         w.add_message(5, Process(1, MappingField(~uint64_t{0}, 1, 0)));
       }},
      {"overlap",
       [](Writer& w) {
         w.add_bytes(3, "");
         w.add_message(5, Process(1, MappingField(16, 0, 0)));
       }},
      {"overlap",
       [](Writer& w) {
         w.add_bytes(3, "");
         w.add_message(
             5, Process(1, MappingField(16, 16, 0) + MappingField(31, 1, 0)));
       }},
      {"no such string",
       [](Writer& w) {
         w.add_message(5, Process(1, MappingField(16, 16, 0)));
       }},
      {"no such process",
       [](Writer& w) {
         w.add_bytes(3, "");
         w.add_message(6, Samples({0, 0, 0, 0, 0, 1}, 6));
       }},
      {"no such stack",
       [](Writer& w) {
         w.add_bytes(3, "");
         w.add_message(5, Process(1, ""));
         w.add_message(6, Samples({0, 0, 0, kFirstStackId, 0, 1}, 6));
       }},
      {"comm is too long",
       [](Writer& w) {
         w.add_bytes(3, "sixteen bytes...");
         w.add_message(5, Process(1, ""));
         w.add_message(6, Samples({0, 0, 0, 0, 0, 1}, 6));
       }},
      {"differ in length",
       [](Writer& w) {
         w.add_bytes(3, "");
         w.add_message(5, Process(1, ""));
         w.add_message(6, Samples({0, 0, 0, 0, 0, 1}, 5));
       }},
      {"kernel symbols", [](Writer& w) { w.add_uint32(8, 4); }},
      {"end of a stack",
       [](Writer& w) {
         std::string stack;
         Writer stack_writer(stack);
         stack_writer.add_fixed64(1, 16);
         stack_writer.add_uint32(5, kStackEnds);
         w.add_message(4, stack);
       }},
      {"no such kind of samples",
       [](Writer& w) {
         w.add_bytes(3, "app");
         w.add_message(5, Process(1, ""));
         std::string samples;
         for (uint32_t column = 1; column <= 7; ++column) {
           const std::array<uint64_t, 1> numbers = {column == 7 ? 1U : 0U};
           Writer(samples).add_packed_uint64(column, numbers.begin(),
                                             numbers.end());
         }
         w.add_message(6, samples);
       }},
      {"too many sample kinds",
       [](Writer& w) {
         std::string metadata;
         for (size_t i = 0; i <= kMaxSampleKinds; ++i) {
           Writer(metadata).add_bytes(28, "");
         }
         w.add_message(1, metadata);
       }},
      {"loss causes",
       [](Writer& w) {
         std::string accounting;
         const std::array<uint64_t, kLossCauses + 1> lost = {};
         Writer(accounting).add_packed_uint64(3, lost.begin(), lost.end());
         w.add_message(2, accounting);
       }},
  };
  for (const MalformedCase& test : cases) {
    std::string payload;
    Writer writer(payload);
    test.build(writer);
    const ksym::Error error = ErrorOf(FileOf(payload));
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << test.what;
    EXPECT_THAT(error.message(), HasSubstr(test.what));
    EXPECT_THAT(error.message(), HasSubstr("offset "));
  }
}

// A file written by another program after the description is understood.
TEST(RawFileTest, ReadsTheDocumentedFormat) {
  std::ifstream in(std::string(KSYM_TEST_DATA_DIR) +
                       "/../fuzz/corpus/raw_profile_fuzz/full_file",
                   std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(in)), {});
  const auto capture = ReadRawCapture(file);
  ASSERT_TRUE(capture.has_value()) << capture.error().message();
  const RawProfile& profile = capture->profile;
  EXPECT_EQ(profile.metadata.kinds.front().event, "cpu-clock");
  EXPECT_EQ(profile.metadata.warnings.size(), 1u);
  EXPECT_EQ(profile.accounting.taken,
            profile.accounting.emitted + profile.accounting.lost());
  ASSERT_EQ(profile.samples.size(), 2u);
  EXPECT_EQ(profile.samples[0].comm, "app");
  EXPECT_EQ(profile.samples[0].user_stack, 100u);
  EXPECT_EQ(profile.samples[1].tid, 9u);
  EXPECT_EQ(profile.samples[1].user_stack, kFaultedStack);
  EXPECT_EQ(profile.stacks.Get(100).frames,
            (std::vector<uint64_t>{0x401136, 0x401180, 0x7f0000000000}));
  EXPECT_EQ(profile.stacks.Get(200).frames[0], 0xffffffff81000000u);
  // It is of version 1.
  EXPECT_EQ(profile.metadata.unwind, "fp");
  EXPECT_EQ(profile.stacks.Get(100).end, StackEnd::kFramePointers);
  EXPECT_EQ(profile.stacks.Get(200).end, StackEnd::kDepthLimit);
  EXPECT_FALSE(profile.stacks.contains(300));
  const auto& image = profile.images.at({.pid = 1, .start_ns = 5});
  ASSERT_EQ(image.mappings.size(), 2u);
  EXPECT_EQ(image.mappings[0].end.value, 0x402000u);
  EXPECT_EQ(image.mappings[0].path, "/usr/bin/app");
  EXPECT_TRUE(profile.images.at({.pid = 2, .start_ns = 5}).mappings.empty());
  EXPECT_EQ(capture->vdso_image,
            "\x7f"
            "ELF");
}

// Unknown fields and known ones of another wire type are skipped.
TEST(RawFileTest, SkipsUnknownFields) {
  std::string payload;
  protozero::pbf_writer writer(payload);
  writer.add_string(1000, "later");
  writer.add_fixed64(1, 7);
  writer.add_string(8, "not a number");
  EXPECT_TRUE(ReadRawCapture(FileOf(payload)).has_value());
}

// A small file cannot ask for unbounded memory through one long text: mappings
// share their paths, and what has copies is bounded.
TEST(RawFileTest, BoundsThePathsMemory) {
  std::string payload;
  protozero::pbf_writer writer(payload);
  writer.add_bytes(3, std::string(1 << 20, 'a'));
  std::string mappings;
  for (uint64_t i = 0; i < 10'000; ++i) {
    mappings += MappingField(16 + i, 1, 0);
  }
  writer.add_message(5, Process(1, mappings));
  const auto capture = ReadRawCapture(FileOf(payload));
  ASSERT_TRUE(capture) << capture.error().message();
  const auto& read = capture->profile.images.begin()->second.mappings;
  ASSERT_EQ(read.size(), 10'000u);
  EXPECT_TRUE(read.front().path.IsSharedWith(read.back().path));
  EXPECT_EQ(read.front().path.size(), size_t{1} << 20);

  std::string change;
  protozero::pbf_writer(change).add_uint64(4, 0);
  for (uint64_t i = 0; i < 256; ++i) writer.add_message(10, change);
  EXPECT_EQ(ErrorOf(FileOf(payload)).code(), ErrorCode::kLimit);
}

}  // namespace
}  // namespace profd
