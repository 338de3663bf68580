// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/daemon/naming/resolve_fixture.h"
#include "tests/ksym/elf/elf_builder.h"

// Known to this program's symbol table, and large enough that the byte after
// the call is within it.
extern "C" __attribute__((noinline)) int ResolveTestMarker(int value) {
  asm volatile("" : "+r"(value));
  return value + 1;
}

namespace profd {
namespace {

using testing::ElementsAre;

using ResolveTest = ResolveFixture;

// Names frames "UNIT.VALUE", an inlined one in each.
class TestNamer : public FrameNamer {
 public:
  void Name(const RawFrame& frame, const ksym::ProcessImage* image,
            ProfileBuilder& builder,
            std::vector<FrameId>& leaf_first) override {
    ++asked;
    has_image |= image != nullptr;
    const std::string name =
        std::to_string(frame.unit) + "." + std::to_string(frame.value);
    leaf_first.push_back(builder.AddFrame(
        {.name = builder.Intern("in " + name), .kind = &kInlinedFrame}));
    leaf_first.push_back(builder.AddFrame({.name = builder.Intern(name)}));
  }

  size_t asked = 0;
  bool has_image = false;
};

// Frames that are not native code are named by whoever knows their kind, once
// each, and stand between the native ones; those nobody knows are unknown.
TEST_F(ResolveTest, NamesFramesOfOtherKinds) {
  TestNamer namer;
  resolver_.SetNamer(7, namer);
  ReadOwnImage();
  Sample({}, {});
  raw_.samples.back().user_stack = AddMixedStack(
      {{.value = 1},
       {.kind = 7, .unit = 5, .value = 6},
       {.kind = 8, .unit = 5, .value = 6},
       {.kind = 7, .unit = 5, .value = 6},
       {.value = reinterpret_cast<uint64_t>(&ResolveTestMarker) + 1}});
  const Profile profile = Resolve();
  EXPECT_THAT(Names(profile, profile.samples[0].user),
              ElementsAre("[unknown]", "in 5.6", "5.6", "[unknown]", "in 5.6",
                          "5.6", "ResolveTestMarker"));
  const FrameId other = profile.Stack(profile.samples[0].user)[3];
  EXPECT_EQ(profile.frames[other].reason, ksym::Unresolved::kNoSymbol);
  EXPECT_EQ(namer.asked, 1u);
  EXPECT_TRUE(namer.has_image);
}

// A frame of a runtime's table is the same one in each process, so it is named
// once.
TEST_F(ResolveTest, NamesFramesOfTheTableOnce) {
  TestNamer namer;
  resolver_.SetNamer(kPythonCode, namer);
  const ksym::ProcessId other = {.pid = self_.pid + 1};
  for (const ksym::ProcessId& process : {self_, other}) {
    raw_.images[process].id = process;
    RawSample& sample = raw_.samples.emplace_back();
    sample.process = process;
    sample.user_stack = AddMixedStack(
        {{.kind = kPythonCode, .value = 6}, {.value = process.pid}});
    sample.count = 1;
  }
  const Profile profile = Resolve();
  ASSERT_EQ(profile.samples.size(), 2u);
  for (const ProfileSample& sample : profile.samples) {
    EXPECT_THAT(Names(profile, sample.user), ElementsAre("in 0.6", "0.6"));
  }
  EXPECT_EQ(namer.asked, 1u);
}

// Has modules that begin at the same place and are as long as the address says.
class NestedModules final : public UserNames {
 public:
  ksym::UserSymbol Find(const ksym::ProcessImage&,
                        ksym::Address address) override {
    ksym::UserSymbol symbol;
    symbol.name = "f";
    symbol.module = std::string_view(kModule).substr(0, address.value);
    symbol.build_id = symbol.module;
    return symbol;
  }

 private:
  static constexpr std::string_view kModule = "abc";
};

// A file is not taken for the one before because its name begins there.
TEST_F(ResolveTest, TellsFilesByTheirWholeNames) {
  raw_.images[self_] = {.id = self_, .mappings = {}};
  Sample({2, 2, 4, 4}, {});  // callers are looked up one byte before
  NestedModules user;
  ProfileBuilder builder;
  resolver_.Add(raw_, user, builder);
  const Profile profile = std::move(builder).Finish(CaptureMetadata());
  std::vector<std::string> objects;
  for (const FrameId id : profile.Stack(profile.samples.at(0).user)) {
    const Frame& frame = profile.frames[id];
    objects.emplace_back(profile.String(frame.object));
    EXPECT_EQ(profile.String(frame.build_id), objects.back());
  }
  EXPECT_THAT(objects, ElementsAre("ab", "a", "abc", "abc"));
}

// Knows where functions of a stripped file begin, every 256 bytes.
class StrippedNames final : public UserNames {
 public:
  ksym::UserSymbol Find(const ksym::ProcessImage&,
                        ksym::Address address) override {
    ksym::UserSymbol symbol;
    symbol.module = "/opt/bin/server";
    symbol.reason = ksym::Unresolved::kNoSymbols;
    symbol.function_start = ksym::ElfAddress{address.value & ~0xffULL};
    return symbol;
  }
};

// Functions without a symbol are called by their file and where they begin, so
// that each is one thing; the reason stays.
TEST_F(ResolveTest, TellsFunctionsWithoutSymbolsApart) {
  raw_.images[self_] = {.id = self_, .mappings = {}};
  Sample({0x1a2b30, 0x1a2b31 + 0x10, 0x1a2c00}, {});
  StrippedNames names;
  ProfileBuilder builder;
  resolver_.Add(raw_, names, builder);
  const Profile profile = std::move(builder).Finish(CaptureMetadata());
  EXPECT_THAT(
      Names(profile, profile.samples.at(0).user),
      ElementsAre("server+0x1a2b00", "server+0x1a2b00", "server+0x1a2b00"));
  for (const Frame& frame : profile.frames) {
    EXPECT_EQ(frame.reason, ksym::Unresolved::kNoSymbols);
  }
}

// A function that a runtime names is not named again by what calls the loop for
// it, unless all native frames are wanted, or the loop has just begun.
TEST_F(ResolveTest, ShowsFunctionsOfTrampolinesOnce) {
  raw_.images[self_] = {.id = self_, .mappings = {}};
  raw_.runtime_frames[1] = {.name = "f", .file = "/srv/app.py"};
  const RawFrame loop = {.value = 0x3000};
  const RawFrame trampoline = {.value = 0x1001};
  Sample({}, {});
  raw_.samples[0].user_stack = AddMixedStack({loop,
                                              trampoline,
                                              {.kind = kPythonCode, .value = 1},
                                              loop,
                                              trampoline,
                                              trampoline});
  const auto names = [&](Resolver& resolver) {
    TrampolineNames user;
    ProfileBuilder builder;
    resolver.Add(raw_, user, builder);
    const Profile profile = std::move(builder).Finish(CaptureMetadata());
    return Names(profile, profile.samples.at(0).user);
  };
  EXPECT_THAT(names(resolver_), ElementsAre("loop", "py::f:/srv/app.py",
                                            "f (app.py)", "py::f:/srv/app.py"));
  Resolver all(
      ResolveOptions{.runtime_calls = ResolveOptions::RuntimeCalls::kKeep});
  EXPECT_THAT(names(all),
              ElementsAre("loop", "py::f:/srv/app.py", "f (app.py)", "loop",
                          "py::f:/srv/app.py", "py::f:/srv/app.py"));
}

// Methods that are inlined stand in front of the one that they are in. Names
// have files where they have lines.
TEST_F(ResolveTest, ShowsInlinedMethodsOfJava) {
  raw_.images[self_] = {.id = self_, .mappings = {}};
  raw_.runtime_frames[1] = {
      .name = "a.B.in", .file = "B.java", .line = 7, .line_is_near = true};
  raw_.runtime_frames[2] = {.name = "a.B.out", .file = "B.java", .line = 9};
  Sample({}, {});
  raw_.samples[0].user_stack =
      AddMixedStack({{.kind = kJavaInlined, .value = 1},
                     {.kind = kJavaCompiled, .value = 2},
                     {.kind = kJavaInterpreted, .value = 3}});
  const auto resolve = [&](Resolver& resolver) {
    TrampolineNames user;
    ProfileBuilder builder;
    resolver.Add(raw_, user, builder);
    return std::move(builder).Finish(CaptureMetadata());
  };
  const Profile plain = resolve(resolver_);
  EXPECT_THAT(Names(plain, plain.samples.at(0).user),
              ElementsAre("a.B.in", "a.B.out", "[java]"));
  const auto stack = plain.Stack(plain.samples.at(0).user);
  const Frame& inlined = plain.frames[stack[0]];
  EXPECT_TRUE(inlined.kind->is_inlined);
  EXPECT_TRUE(inlined.line_is_near);
  EXPECT_EQ(inlined.line, 7u);
  EXPECT_FALSE(plain.frames[stack[1]].line_is_near);
  Resolver with_lines(ResolveOptions{.runtime_lines = RuntimeLines::kShow});
  const Profile lines = resolve(with_lines);
  EXPECT_THAT(Names(lines, lines.samples.at(0).user),
              ElementsAre("a.B.in (B.java:7)", "a.B.out (B.java:9)", "[java]"));
}

// Frames that a stripped file could not name are named when there is a source
// of debug files, the others stay as they are.
TEST_F(ResolveTest, NamesTheRestAgain) {
  ksym::TestElf stripped;
  stripped.dynamic_symbols = {{"exported", 0x401000, 0x10}};
  ksym::TestElf full = stripped;
  full.symbols = {{"exported", 0x401000, 0x10}, {"hidden", 0x401010, 0x10}};
  const std::string path = testing::TempDir() + "ksym_resolve_again";
  std::ofstream(path) << ksym::ElfBuilder<ksym::Elf64Types>::Build(stripped);
  ksym::Mapping mapping;
  mapping.start = {0x10000};
  mapping.end = {0x11000};
  mapping.file_offset = {0x1000};
  mapping.path = path;
  raw_.images[self_] = {.id = self_, .mappings = {mapping}};
  Sample({0x10014, 0x10001, 0x10101, 0x90001}, {});
  ksym::Symbolizer symbolizer(
      {.files = ksym::SymbolizerOptions::Files::kOfHost});
  SymbolizerNames names(symbolizer);
  Resolver resolver{ResolveOptions()};
  ProfileBuilder builder;
  resolver.Add(raw_, names, builder);
  Profile profile = std::move(builder).Finish(CaptureMetadata());
  const CallStackId stack = profile.samples[0].user;
  EXPECT_THAT(Names(profile, stack),
              ElementsAre("[ksym_resolve_again]", "exported",
                          "[ksym_resolve_again]", "[unknown]"));
  symbolizer.SetDebugFileSource([&](const std::string&) {
    return ksym::Result<ksym::ByteSource>(ksym::ByteSource::OfMemory(
        ksym::ElfBuilder<ksym::Elf64Types>::Build(full)));
  });
  ResolveAgain(symbolizer, profile);
  EXPECT_THAT(
      Names(profile, stack),
      ElementsAre("hidden", "exported", "[ksym_resolve_again]", "[unknown]"));
  const Frame& frame = profile.frames[profile.Stack(stack)[0]];
  EXPECT_EQ(frame.symbol_offset, 4u);
  EXPECT_EQ(frame.reason, ksym::Unresolved::kNone);
  std::filesystem::remove(path);
}

// A user frame has its function, file and no reason.
TEST_F(ResolveTest, NamesUserFrames) {
  ReadOwnImage();
  Sample({reinterpret_cast<uint64_t>(&ResolveTestMarker)}, {});
  const Profile profile = Resolve();
  ASSERT_EQ(profile.frames.size(), 1u);
  const Frame& frame = profile.frames[0];
  EXPECT_EQ(profile.String(frame.name), "ResolveTestMarker");
  EXPECT_EQ(frame.reason, ksym::Unresolved::kNone);
  EXPECT_THAT(std::string(profile.String(frame.object)),
              testing::EndsWith("resolve_test"));
  EXPECT_EQ(frame.kind, &kUserFrame);
  EXPECT_EQ(frame.symbol_offset, 0u);
}

// A process whose mappings were never read gives a reason, not a guess.
TEST_F(ResolveTest, ExplainsAProcessThatWasGone) {
  Sample({0x401000}, {});
  const Profile profile = Resolve();
  ASSERT_EQ(profile.frames.size(), 1u);
  EXPECT_EQ(profile.String(profile.frames[0].name), "[unknown]");
  EXPECT_EQ(profile.frames[0].reason, ksym::Unresolved::kNoProcess);
}

// A stack that several processes have is named in each as its own mappings say,
// whatever the order of the samples; ids that no stack has are none.
TEST_F(ResolveTest, NamesASharedStackInEachProcess) {
  ReadOwnImage();
  const StackId id = AddStack({reinterpret_cast<uint64_t>(&ResolveTestMarker)});
  const ksym::ProcessId other = {.pid = self_.pid + 1};
  raw_.images[other].id = other;
  for (const ksym::ProcessId& process : {self_, other, self_, other}) {
    RawSample& sample = raw_.samples.emplace_back();
    sample.process = process;
    sample.user_stack = id;
    sample.count = 1;
  }
  raw_.samples.emplace_back().user_stack = id + 1;
  ProfileBuilder builder(ProfileBuilder::Parts::kOne);
  resolver_.Add(raw_, names_, builder);
  const Profile profile = std::move(builder).Finish(CaptureMetadata());
  ASSERT_EQ(profile.samples.size(), 5u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_THAT(Names(profile, profile.samples[i].user),
                ElementsAre(i % 2 == 0 ? "ResolveTestMarker" : "[unknown]"));
  }
  EXPECT_EQ(profile.samples[4].user_state, StackState::kNone);
}

// An address in none of the mappings is unmapped.
TEST_F(ResolveTest, ExplainsAnUnmappedAddress) {
  ReadOwnImage();
  Sample({8}, {});
  const Profile profile = Resolve();
  ASSERT_EQ(profile.frames.size(), 1u);
  EXPECT_EQ(profile.String(profile.frames[0].name), "[unknown]");
  EXPECT_EQ(profile.frames[0].reason, ksym::Unresolved::kUnmapped);
}

// States that are no stacks keep their meaning.
TEST_F(ResolveTest, KeepsStatesOfMissingStacks) {
  RawSample sample;
  sample.process = self_;
  sample.count = 7;
  sample.user_stack = kFaultedStack;
  sample.kernel_stack = kCollidedStack;
  raw_.samples.push_back(sample);
  const Profile profile = Resolve();
  EXPECT_EQ(profile.samples[0].user_state, StackState::kFaulted);
  EXPECT_EQ(profile.samples[0].kernel_state, StackState::kCollided);
  EXPECT_EQ(profile.samples[0].count, 7u);
}

}  // namespace
}  // namespace profd
