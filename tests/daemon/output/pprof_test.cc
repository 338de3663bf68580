// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/pprof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <cstdint>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/output/format.h"
#include "daemon/output/gzip.h"
#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

using By = OutputOptions::By;
using protozero::pbf_reader;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::string Unzipped(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string in = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  std::string out;
  std::array<char, 4096> block = {};
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = block.size();
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(block.data(), block.size() - stream.avail_out);
  }
  EXPECT_EQ(status, Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0);
  inflateEnd(&stream);
  return out;
}

struct DecodedLocation {
  uint64_t mapping = 0;
  uint64_t address = 0;
  uint64_t function = 0;           // of the last line
  std::vector<std::string> lines;  // "function FILE:LINE", innermost first
};
struct DecodedSample {
  std::vector<std::string> frames;  // leaf first
  std::vector<int64_t> values;
  std::map<std::string, std::string> labels;
};
struct DecodedMapping {
  std::string filename;
  std::string build_id;
  uint64_t limit = 0;
};

// A reader of profile.proto of its own: field numbers are written out here
// again, and each id that is named must be there.
class Decoded {
 public:
  explicit Decoded(const std::string& gzipped) : bytes_(Unzipped(gzipped)) {
    Each(6, [&](pbf_reader&, std::string text) { strings.push_back(text); });
    EachMessage(5, [&](pbf_reader message) {
      auto fields = Numbers(message);
      EXPECT_EQ(fields.at(2), fields.at(3));
      files[fields.at(1)] = strings.at(fields[4]);
      functions[fields.at(1)] = strings.at(fields.at(2));
    });
    EachMessage(3, [&](pbf_reader message) {
      auto fields = Numbers(message);
      EXPECT_EQ(fields[1], mappings.size() + 1);
      EXPECT_EQ(fields[7], 1u);
      mappings.push_back(
          {strings.at(fields[5]), strings.at(fields[6]), fields[3]});
    });
    EachMessage(4, [&](pbf_reader message) {
      DecodedLocation location;
      uint64_t id = 0;
      while (message.next()) {
        if (message.tag() == 1) {
          id = message.get_uint64();
        } else if (message.tag() == 2) {
          location.mapping = message.get_uint64();
        } else if (message.tag() == 3) {
          location.address = message.get_uint64();
        } else {
          auto fields = Numbers(message.get_message());
          location.function = fields.at(1);
          location.lines.push_back(functions.at(fields.at(1)) + " " +
                                   files[fields.at(1)] + ":" +
                                   std::to_string(fields[2]));
        }
      }
      EXPECT_NE(id, 0u);
      EXPECT_LE(location.mapping, mappings.size());
      EXPECT_TRUE(locations.emplace(id, location).second);
    });
    EachMessage(2, [&](pbf_reader message) { AddSample(message); });
  }

  std::vector<std::string> ValueTypes(uint32_t field) {
    std::vector<std::string> types;
    EachMessage(field, [&](pbf_reader message) {
      const auto fields = Numbers(message);
      types.push_back(strings.at(fields.at(1)) + "/" +
                      strings.at(fields.at(2)));
    });
    return types;
  }
  uint64_t Number(uint32_t field) {
    return Numbers(pbf_reader(bytes_)).at(field);
  }
  std::vector<std::string> Comments() {
    std::vector<std::string> comments;
    pbf_reader reader(bytes_);
    while (reader.next()) {
      if (reader.tag() == 13) {
        comments.push_back(strings.at(reader.get_uint64()));
      } else {
        reader.skip();
      }
    }
    return comments;
  }

  std::vector<std::string> strings;
  std::map<uint64_t, std::string> functions;
  std::map<uint64_t, std::string> files;  // of functions
  std::vector<DecodedMapping> mappings;
  std::map<uint64_t, DecodedLocation> locations;
  std::vector<DecodedSample> samples;

 private:
  template <typename Use>
  void Each(uint32_t field, const Use& use) {
    pbf_reader reader(bytes_);
    while (reader.next()) {
      if (reader.tag() == field) {
        use(reader, reader.get_string());
      } else {
        reader.skip();
      }
    }
  }
  template <typename Use>
  void EachMessage(uint32_t field, const Use& use) {
    pbf_reader reader(bytes_);
    while (reader.next()) {
      if (reader.tag() == field) {
        use(reader.get_message());
      } else {
        reader.skip();
      }
    }
  }
  static std::map<uint32_t, uint64_t> Numbers(pbf_reader message) {
    std::map<uint32_t, uint64_t> numbers;
    while (message.next()) {
      if (message.wire_type() == protozero::pbf_wire_type::varint) {
        numbers[message.tag()] = message.get_uint64();
      } else {
        message.skip();
      }
    }
    return numbers;
  }

  void AddSample(pbf_reader message) {
    DecodedSample& sample = samples.emplace_back();
    while (message.next()) {
      if (message.tag() == 1) {
        for (const uint64_t id : message.get_packed_uint64()) {
          sample.frames.push_back(functions.at(locations.at(id).function));
        }
      } else if (message.tag() == 2) {
        for (const int64_t value : message.get_packed_int64()) {
          sample.values.push_back(value);
        }
      } else {
        auto label = Numbers(message.get_message());
        sample.labels[strings.at(label[1])] =
            label.contains(2) ? strings.at(label[2]) : std::to_string(label[3]);
      }
    }
  }

  std::string bytes_;
};

// Both values, leaf first with the kernel on top of user space, and labels that
// tell whose sample it is.
TEST(PprofTest, Sample) {
  TestProfile p;
  p.Add({.comm = "spin",
         .pid = 12,
         .tid = 13,
         .user = {p.User("leaf"), p.User("main")},
         .kernel = {p.Kernel("vfs_read"), p.Kernel("do_syscall_64")},
         .count = 99});
  Decoded decoded(RenderPprof(std::move(p).Finish(), {.by = By::kTid}));
  ASSERT_EQ(decoded.samples.size(), 1u);
  const DecodedSample& sample = decoded.samples[0];
  EXPECT_THAT(sample.frames,
              ElementsAre("vfs_read", "do_syscall_64", "leaf", "main"));
  EXPECT_THAT(sample.values, ElementsAre(99, 99 * (1'000'000'000 / 99)));
  EXPECT_THAT(sample.labels, ElementsAre(Pair("comm", "spin"),
                                         Pair("pid", "12"), Pair("tid", "13")));
  EXPECT_THAT(decoded.ValueTypes(1),
              ElementsAre("samples/count", "cpu/nanoseconds"));
  EXPECT_THAT(decoded.ValueTypes(11), ElementsAre("cpu/nanoseconds"));
  EXPECT_EQ(decoded.Number(12), 1'000'000'000u / 99);
  EXPECT_EQ(decoded.Number(9), 1700000000123456789u);
  EXPECT_EQ(decoded.Number(10), 10000000000u);
  EXPECT_EQ(decoded.strings.at(decoded.Number(14)), "cpu");
}

// The first mapping is the file where most user stacks begin, the kernel has
// the name that pprof knows, and a frame's address is its offset in the file,
// below the mapping's limit.
TEST(PprofTest, Mappings) {
  TestProfile p;
  p.Add({.user = {p.User("read", "/lib/libc.so.6"), p.User("m", "/bin/z")},
         .kernel = {p.Kernel("k"), p.Kernel("w", "[ext4]")},
         .count = 5});
  p.Add({.user = {p.User("m", "/bin/a")}, .count = 4});
  p.Add({.user = {p.User("jit", "")}});
  Decoded decoded(RenderPprof(std::move(p).Finish(), {}));
  std::vector<std::string> names;
  names.reserve(decoded.mappings.size());
  for (const DecodedMapping& mapping : decoded.mappings) {
    names.push_back(mapping.filename);
  }
  EXPECT_THAT(names, ElementsAre("/bin/z", "/bin/a", "/lib/libc.so.6", "[ext4]",
                                 "[kernel.kallsyms]"));
  EXPECT_EQ(decoded.mappings[0].build_id, "0123456789abcdef");
  bool jit_has_mapping = true;
  for (const auto& [id, location] : decoded.locations) {
    const std::string& function = decoded.functions.at(location.function);
    if (function == "jit") jit_has_mapping = location.mapping != 0;
    if (location.mapping == 0) continue;
    const DecodedMapping& mapping = decoded.mappings[location.mapping - 1];
    EXPECT_LT(location.address, mapping.limit);
    if (function == "m") {
      EXPECT_EQ(location.address, 0x1001u);
    }
  }
  EXPECT_FALSE(jit_has_mapping);
}

// What is missing of a stack is a frame with the same words as in folded lines,
// and a label.
TEST(PprofTest, IncompleteStacks) {
  TestProfile p;
  p.Add({.comm = "t",
         .user = {p.User("f")},
         .user_state = StackState::kTruncated});
  p.Add({.comm = "m",
         .kernel = {p.Kernel("k")},
         .user_state = StackState::kFaulted});
  Decoded decoded(RenderPprof(std::move(p).Finish(), {}));
  ASSERT_EQ(decoded.samples.size(), 2u);
  for (const DecodedSample& sample : decoded.samples) {
    if (sample.labels.at("comm") == "t") {
      EXPECT_THAT(sample.frames, ElementsAre("f", "[truncated]"));
      EXPECT_EQ(sample.labels.at("user_stack"), "truncated");
    } else {
      EXPECT_THAT(sample.frames, ElementsAre("k", "[Missed User Stack]"));
      EXPECT_EQ(sample.labels.at("user_stack"), "faulted");
    }
  }
}

// A sample's labels are those that are wanted; what differs in others only is
// one sample.
TEST(PprofTest, ChosenLabels) {
  TestProfile p;
  const FrameId f = p.User("f");
  p.Add({.pid = 1, .cgroup = "/a.slice/b.service", .user = {f}});
  p.Add({.pid = 2, .cgroup = "/a.slice/b.service", .user = {f}});
  p.Add({.pid = 3, .user = {f}});
  Profile profile = std::move(p).Finish();
  Decoded all(RenderPprof(profile, {}));
  ASSERT_EQ(all.samples.size(), 3u);
  Decoded few(RenderPprof(
      profile,
      {.labels = {
           .host = true, .pid = false, .comm = false, .cgroup = false}}));
  ASSERT_EQ(few.samples.size(), 2u);
  const auto& with_unit =
      few.samples[0].labels.contains("unit") ? few.samples[0] : few.samples[1];
  EXPECT_THAT(with_unit.values, ElementsAre(2, testing::_));
  EXPECT_THAT(with_unit.labels,
              testing::UnorderedElementsAre(
                  testing::Pair("host", profile.metadata.hostname),
                  testing::Pair("unit", "b.service")));
}

TEST(PprofTest, MarksParkedSamples) {
  TestProfile p;
  const FrameId f = p.User("f");
  p.Add({.pid = 1, .user = {f}});
  Profile profile = std::move(p).Finish();
  profile.samples.push_back(profile.samples[0]);
  profile.samples[1].parked = true;
  const Decoded decoded(RenderPprof(profile, {}));
  ASSERT_EQ(decoded.samples.size(), 2u);
  const auto& parked = decoded.samples[0].labels.contains("parked")
                           ? decoded.samples[0]
                           : decoded.samples[1];
  EXPECT_EQ(parked.labels.at("parked"), "yes");
  const auto& other = decoded.samples[&parked == &decoded.samples[0] ? 1 : 0];
  EXPECT_FALSE(other.labels.contains("parked"));
}

// The accounting and the warnings are in the comments.
TEST(PprofTest, Comments) {
  Decoded decoded(RenderPprof(ExampleProfile(1), {}));
  const auto comments = decoded.Comments();
  EXPECT_THAT(comments, Contains("samples: 120 taken, 112 emitted, 8 lost"));
  EXPECT_THAT(comments, Contains("lost: 5 counts-full"));
  EXPECT_THAT(comments, Contains("damaged: 4 truncated"));
  EXPECT_THAT(comments,
              Contains("warning: kernel symbols are hidden \"here\""));
}

// The same samples give the same bytes, in whatever order they come.
TEST(PprofTest, OrderDoesNotMatter) {
  const std::string first = RenderPprof(ExampleProfile(1), {});
  for (uint32_t seed = 2; seed < 20; ++seed) {
    EXPECT_TRUE(RenderPprof(ExampleProfile(seed), {}) == first) << seed;
  }
}

// With -c the weight of a sample is the period, of cpu-clock in nanoseconds,
// and a product that does not fit is the largest number instead of a wrong one.
TEST(PprofTest, CountPeriod) {
  TestProfile p;
  p.Add({.user = {p.User("f")}, .count = 3});
  Profile profile = std::move(p).Finish();
  profile.metadata.kinds = {EventKind("cpu-clock", 0, 1000)};
  EXPECT_THAT(Decoded(RenderPprof(profile, {})).samples.at(0).values,
              ElementsAre(3, 3000));
  profile.metadata.kinds = {EventKind("cycles", 0, uint64_t{1} << 63)};
  Decoded decoded(RenderPprof(profile, {}));
  EXPECT_THAT(decoded.ValueTypes(1),
              ElementsAre("samples/count", "cycles/count"));
  EXPECT_THAT(decoded.samples.at(0).values, ElementsAre(3, INT64_MAX));
}

// A profile of several kinds has a type for each, and each sample the value of
// its own.
TEST(PprofTest, SeveralKinds) {
  TestProfile p;
  const auto f = p.User("f");
  p.Add({.user = {f}, .count = 3});
  p.Add({.user = {f}, .kind = 1, .count = 2, .value = 50});
  p.Add({.user = {f}, .kind = 2, .count = 4});
  Profile profile = std::move(p).Finish();
  profile.metadata.kinds = {EventKind("cpu-clock", 100, 0),
                            {.name = "blocked",
                             .unit = "nanoseconds",
                             .event = "sched_switch",
                             .has_values = true},
                            EventKind("page-faults", 0, 10)};
  Decoded decoded(RenderPprof(profile, {}));
  EXPECT_THAT(decoded.ValueTypes(1),
              ElementsAre("samples/count", "cpu/nanoseconds",
                          "blocked/nanoseconds", "page-faults/count"));
  ASSERT_EQ(decoded.samples.size(), 3u);
  EXPECT_THAT(decoded.samples[0].values, ElementsAre(3, 30'000'000, 0, 0));
  EXPECT_THAT(decoded.samples[1].values, ElementsAre(0, 0, 50, 0));
  EXPECT_THAT(decoded.samples[2].values, ElementsAre(0, 0, 0, 40));
  // The first one has values: there is no number of samples.
  std::swap(profile.metadata.kinds[0], profile.metadata.kinds[1]);
  EXPECT_THAT(Decoded(RenderPprof(profile, {})).ValueTypes(1),
              ElementsAre("blocked/nanoseconds", "cpu/nanoseconds",
                          "page-faults/count"));
}

// Names reach a terminal through pprof's reports: control characters are
// replaced as everywhere.
TEST(PprofTest, HostileNames) {
  TestProfile p;
  p.Add({.comm = "\x1b[2J", .user = {p.User("a\x1b]0;b\x07\n")}});
  Decoded decoded(RenderPprof(std::move(p).Finish(), {}));
  EXPECT_THAT(decoded.samples.at(0).frames, ElementsAre("a?]0;b??"));
  EXPECT_EQ(decoded.samples.at(0).labels.at("comm"), "?[2J");
}

// A profile without samples has types, no samples, and is read.
TEST(PprofTest, Empty) {
  Decoded decoded(RenderPprof(TestProfile().Finish(), {}));
  EXPECT_TRUE(decoded.samples.empty());
  EXPECT_EQ(decoded.strings.at(0), "");
  EXPECT_EQ(decoded.ValueTypes(1).size(), 2u);
}

// Empty, small, and larger than any buffer between.
TEST(GzipTest, RoundTrip) {
  std::string noise;
  uint32_t state = 1;
  while (noise.size() < 1'000'000) {
    state = state * 1664525 + 1013904223;
    noise += static_cast<char>(state >> 24);
  }
  for (const std::string& text :
       {std::string(), std::string("a"), std::string(3'000'000, 'x'), noise}) {
    EXPECT_TRUE(Unzipped(Gzip(text)) == text) << text.size();
  }
}

// Extension and name of the format.
TEST(PprofTest, IsSelected) {
  EXPECT_EQ(FormatOfExtension("a.pb.gz"), OutputFormat::kPprof);
  EXPECT_EQ(FormatOfExtension("a.pprof"), OutputFormat::kPprof);
  EXPECT_EQ(*ParseOutputFormat("pprof"), OutputFormat::kPprof);
  const auto wrong = ParseOutputFormat("pprot");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message(), HasSubstr("pprof"));
}

// Inlined frames are lines of the place of the function that they are in, and
// the same function alone is another place.
TEST(PprofTest, InlinedFrames) {
  TestProfile p;
  const auto outer = p.Placed("outer", "/src/a.cc", 30);
  const auto inner = p.Inlined("inner", "/src/a.h", 5);
  const auto innermost = p.Inlined("innermost", "/src/b.h", 7);
  p.Add({.user = {innermost, inner, outer, p.User("main")}, .count = 3});
  p.Add({.user = {inner, outer, outer}, .count = 2});
  const Decoded decoded(RenderPprof(std::move(p).Finish(), {}));
  std::vector<std::vector<std::string>> lines;
  for (const auto& [id, location] : decoded.locations) {
    lines.push_back(location.lines);
  }
  EXPECT_THAT(lines,
              UnorderedElementsAre(
                  ElementsAre("innermost /src/b.h:7", "inner /src/a.h:5",
                              "outer /src/a.cc:30"),
                  ElementsAre("inner /src/a.h:5", "outer /src/a.cc:30"),
                  ElementsAre("outer /src/a.cc:30"), ElementsAre("main :0")));
}

}  // namespace
}  // namespace profd
