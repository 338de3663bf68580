// SPDX-License-Identifier: Apache-2.0
// Raw captures that no writer of ours made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "daemon/raw/raw_file.h"
#include "daemon/raw/raw_file_layout.h"
#include "tests/daemon/raw/raw_error.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ::testing::HasSubstr;

// A file whose header is right and whose payload is ours to choose.
std::string FileOf(const std::string& payload) {
  return raw_file::Header(payload) + payload;
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

// With one field of those that name something else.
std::string Waker(uint32_t field, uint64_t index) {
  std::string waker;
  protozero::pbf_writer(waker).add_uint64(field, index);
  return waker;
}

// Sums of so many threads, of which so many are listed.
std::string Sums(uint64_t count, size_t listed) {
  std::string sums;
  protozero::pbf_writer writer(sums);
  writer.add_uint64(1, count);
  const std::vector<uint64_t> numbers(listed);
  for (uint32_t column = 5; column <= 10; ++column) {
    writer.add_packed_uint64(column, numbers.begin(), numbers.end());
  }
  return sums;
}

// Files with a right checksum that break a rule of the format are refused.
TEST(RawFormatTest, RefusesBrokenRules) {
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
      {"threads' lives differ in length",
       [](Writer& w) {
         std::string lives;
         const std::array<uint64_t, 2> numbers = {1, 2};
         Writer message(lives);
         message.add_packed_uint64(1, numbers.begin(), numbers.end());
         message.add_packed_uint64(2, numbers.begin(), numbers.end());
         message.add_packed_uint64(3, numbers.begin(), numbers.begin() + 1);
         w.add_message(14, lives);
       }},
      {"threads' sums differ in length",
       [](Writer& w) {
         std::string sums;
         const std::array<uint64_t, 1> number = {1};
         Writer message(sums);
         message.add_uint64(1, 1);
         message.add_packed_uint64(5, number.begin(), number.end());
         w.add_message(16, sums);
       }},
      {"more threads are listed",
       [](Writer& w) {
         w.add_bytes(3, "app");
         w.add_message(16, Sums(0, 1));
       }},
      {"32-bit number is larger",
       [](Writer& w) { w.add_message(16, Sums(uint64_t{1} << 32, 0)); }},
      {"no such process", [](Writer& w) { w.add_message(15, Waker(3, 0)); }},
      {"comm is too long",
       [](Writer& w) {
         w.add_bytes(3, "sixteen bytes...");
         w.add_message(15, Waker(5, 0));
       }},
      {"no such stack",
       [](Writer& w) { w.add_message(15, Waker(7, kFirstStackId)); }},
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
      {"comm has a NUL",
       [](Writer& w) {
         w.add_bytes(3, std::string("a\0b", 3));
         w.add_message(15, Waker(5, 0));
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
      {"kernel symbols", [](Writer& w) { w.add_uint32(8, 5); }},
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
TEST(RawFormatTest, ReadsTheDocumentedFormat) {
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
  EXPECT_EQ(profile.samples[0].comm.view(), "app");
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
TEST(RawFormatTest, SkipsUnknownFields) {
  std::string payload;
  protozero::pbf_writer writer(payload);
  writer.add_string(1000, "later");
  writer.add_fixed64(1, 7);
  writer.add_string(8, "not a number");
  EXPECT_TRUE(ReadRawCapture(FileOf(payload)).has_value());
}

// A small file cannot ask for unbounded memory through one long text: mappings
// share their paths, and what has copies is bounded.
TEST(RawFormatTest, BoundsThePathsMemory) {
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

// As many threads are listed as one capture lists, and no more.
TEST(RawFormatTest, BoundsListedThreads) {
  const size_t most = ThreadSums::kMaxThreads;
  const auto file_of = [](size_t listed) {
    std::string payload;
    protozero::pbf_writer writer(payload);
    writer.add_bytes(3, "app");
    writer.add_message(16, Sums(listed, listed));
    return FileOf(payload);
  };
  const auto capture = ReadRawCapture(file_of(most));
  ASSERT_TRUE(capture) << capture.error().message();
  EXPECT_EQ(capture->thread_sums.threads.size(), most);
  EXPECT_THAT(ErrorOf(file_of(most + 1)).message(),
              HasSubstr("too many threads are listed"));
}

}  // namespace
}  // namespace profd
