// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "daemon/capture/stack_records.h"
#include "daemon/naming/resolve.h"
#include "daemon/output/format.h"
#include "daemon/profile/frame_kinds.h"
#include "daemon/raw/raw_file.h"

namespace profd {
namespace {

using testing::HasSubstr;

// A kind of frame that no other file knows: the code of a toy runtime.
constexpr RawFrameKind kToy = 0x70;
constexpr FrameKind kToyFrame = {
    .name = "toy", .folded_suffix = "_[t]", .colour = FlameKind::kGenerated};

class ToyNamer : public FrameNamer {
 public:
  void Name(const RawFrame& frame, const ksym::ProcessImage* /*image*/,
            ProfileBuilder& builder,
            std::vector<FrameId>& leaf_first) override {
    leaf_first.push_back(builder.AddFrame(
        {.name = builder.Intern("toy_" + std::to_string(frame.unit)),
         .object = builder.Intern("[toy]"),
         .kind = &kToyFrame,
         .file = builder.Intern("/src/main.toy"),
         .line = static_cast<uint32_t>(frame.value)}));
  }
};

// Names no address.
class NoNames : public UserNames {
 public:
  ksym::UserSymbol Find(const ksym::ProcessImage& /*image*/,
                        ksym::Address /*address*/) override {
    ksym::UserSymbol symbol;
    symbol.reason = ksym::Unresolved::kUnmapped;
    return symbol;
  }
};

// A stack as the sampler would send it: native, toy, toy, native.
profile_stack_record ToyRecord() {
  profile_stack_record record = {};
  record.header.type = PROFILE_RECORD_STACK;
  record.id = 100;
  record.end = UNWIND_END_OUTERMOST;
  record.mixed = 1;
  const std::vector<uint64_t> words = {0x401000, PROFILE_FRAME_HEAD(kToy, 1),
                                       10,       PROFILE_FRAME_HEAD(kToy, 2),
                                       20,       0x402000};
  std::ranges::copy(words, record.frames);
  record.depth = static_cast<uint32_t>(words.size());
  return record;
}

RawCapture ToyCapture() {
  const std::string frames = PackMixedFrames(MixedFramesOf(ToyRecord()));
  RawCapture capture;
  RawProfile& profile = capture.profile;
  profile.stacks.Add(
      100, PackedStack{
               .frames = frames, .end = StackEnd::kOutermost, .mixed = true});
  const ksym::ProcessId process = {.pid = 1, .exec_count = 0, .start_ns = 1};
  profile.images[process] = {.id = process, .mappings = {}};
  profile.samples.push_back(
      {.process = process, .comm = Comm("app"), .user_stack = 100, .count = 3});
  return capture;
}

Profile Named(const RawCapture& capture) {
  ToyNamer namer;
  NoNames names;
  Resolver resolver({});
  resolver.SetNamer(kToy, namer);
  ProfileBuilder builder;
  resolver.Add(capture.profile, names, builder);
  return std::move(builder).Finish(capture.profile.metadata);
}

// A frame of a new kind gets from the sampler's record through a raw capture
// into each format by its row and its namer alone.
TEST(FrameKindTest, ANewKindNeedsARowAndANamer) {
  std::string file;
  ASSERT_TRUE(WriteRawCapture(ToyCapture(), file));
  const auto capture = ReadRawCapture(file);
  ASSERT_TRUE(capture) << capture.error().message();
  const Profile profile = Named(*capture);
  OutputOptions options;
  options.annotations = true;
  EXPECT_EQ(Render(profile, OutputFormat::kFolded, options),
            "app;[unknown];toy_2_[t];toy_1_[t];[unknown] 3\n");
  EXPECT_THAT(Render(profile, OutputFormat::kJson, options),
              HasSubstr("{\"name\":\"toy_1\",\"kind\":\"toy\","
                        "\"module\":\"[toy]\",\"symbol_offset\":\"0x0\","
                        "\"file\":\"/src/main.toy\",\"line\":10}"));
  EXPECT_THAT(Render(profile, OutputFormat::kText, options),
              HasSubstr("toy_2+0x0 [toy] /src/main.toy:20\n"));
  EXPECT_THAT(Render(profile, OutputFormat::kPerfScript, options),
              HasSubstr("toy_2+0x0 ([toy])\n"));
  EXPECT_THAT(Render(profile, OutputFormat::kSpeedscope, options),
              HasSubstr("\"name\":\"toy_2\",\"file\":\"/src/main.toy\","
                        "\"line\":20"));
  // The hue of generated code.
  EXPECT_THAT(Render(profile, OutputFormat::kSvg, options),
              HasSubstr("#6fcdb0"));
}

// What a hostile stack holds is no frame of another kind unless the record says
// that it has some, and a frame without its second word is none.
TEST(FrameKindTest, TakesOnlyWhatTheRecordSays) {
  profile_stack_record record = ToyRecord();
  record.depth = 4;  // the last one is half a frame
  EXPECT_EQ(MixedFramesOf(record),
            (std::vector<RawFrame>{{.value = 0x401000},
                                   {.kind = kToy, .unit = 1, .value = 10}}));
  record.frames[1] = 0xffffffff81000000;
  record.depth = 2;
  EXPECT_EQ(MixedFramesOf(record),
            (std::vector<RawFrame>{{.value = 0x401000},
                                   {.value = 0xffffffff81000000}}));
}

}  // namespace
}  // namespace profd
