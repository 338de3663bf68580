// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/kernel/kallsyms_reader.h"
#include "ksym/process/process_image.h"
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

constexpr std::string_view kTable =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T first\n"
    "ffffffff81001000 T second\n"
    "ffffffff81002000 T _etext\n"
    "ffffffffc0001000 t module_function\t[some_module]\n";

ksym::KernelTimeline Timeline(std::string_view table = kTable) {
  const ksym::UniqueFd fd(::memfd_create("kallsyms", MFD_CLOEXEC));
  EXPECT_TRUE(ksym::WriteAll(fd.get(), table));
  ::lseek(fd.get(), 0, SEEK_SET);
  auto map = ksym::LoadKallsyms(fd.get());
  EXPECT_TRUE(map) << map.error().message();
  return ksym::KernelTimeline(ksym::KernelSymbolSource(std::move(*map)));
}

class ResolveTest : public testing::Test {
 protected:
  // Adds a sample of this process.
  void Sample(std::vector<uint64_t> user, std::vector<uint64_t> kernel) {
    RawSample sample;
    sample.process = self_;
    sample.comm = "test";
    sample.count = 1;
    sample.user_stack = AddStack(std::move(user));
    sample.kernel_stack = AddStack(std::move(kernel));
    raw_.samples.push_back(sample);
  }
  StackId AddStack(std::vector<uint64_t> frames) {
    if (frames.empty()) return kNoStack;
    const StackId id = next_id_++;
    raw_.stacks.Add(id, RawStack{.frames = std::move(frames)});
    return id;
  }
  StackId AddMixedStack(const std::vector<RawFrame>& frames) {
    const std::string packed = PackMixedFrames(frames);
    const StackId id = next_id_++;
    raw_.stacks.Add(id, PackedStack{.frames = packed, .mixed = true});
    return id;
  }
  void ReadOwnImage() {
    auto mappings = ksym::ReadMaps(self_.pid);
    ASSERT_TRUE(mappings);
    raw_.images[self_] = {.id = self_, .mappings = std::move(*mappings)};
  }
  Profile Resolve() {
    ProfileBuilder builder;
    resolver_.Add(raw_, names_, builder);
    return std::move(builder).Finish(CaptureMetadata());
  }
  static std::vector<std::string> Names(const Profile& profile,
                                        CallStackId id) {
    std::vector<std::string> names;
    for (const FrameId frame : profile.Stack(id)) {
      names.emplace_back(profile.String(profile.frames[frame].name));
    }
    return names;
  }

  const ksym::ProcessId self_ = {
      .pid = static_cast<uint32_t>(::getpid()), .exec_count = 1, .start_ns = 1};
  RawProfile raw_;
  StackId next_id_ = kFirstStackId;
  ksym::Symbolizer symbolizer_{ksym::SymbolizerOptions()};
  SymbolizerNames names_{symbolizer_};
  Resolver resolver_{ResolveOptions()};
  ksym::KernelTimeline timeline_ = Timeline();
};

// The first frame is looked up where it is, a return address in its call: at
// a function's first byte the one names it and the other its predecessor.
TEST_F(ResolveTest, LooksReturnAddressesUpInTheCall) {
  resolver_.SetKernelSymbols(timeline_);
  Sample({}, {0xffffffff81001000, 0xffffffff81001000, 0xffffffff81001001});
  const Profile profile = Resolve();
  ASSERT_EQ(profile.samples.size(), 1u);
  EXPECT_THAT(Names(profile, profile.samples[0].kernel),
              ElementsAre("second", "first", "second"));
}

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

// A perf map's names of code that calls an interpreter for one function each,
// below 0x2000; other code is the interpreter's.
class TrampolineNames final : public UserNames {
 public:
  ksym::UserSymbol Find(const ksym::ProcessImage&,
                        ksym::Address address) override {
    ksym::UserSymbol symbol;
    if (address.value < 0x2000) {
      symbol.name = "py::f:/srv/app.py";
    } else {
      symbol.name = "loop";
      symbol.module = "/usr/bin/python3";
    }
    return symbol;
  }
};

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

// An interrupt's entry code has no caller: the frame below it is where the CPU
// was, perhaps at a function's first byte. A function that only calls on
// another stack has one.
TEST_F(ResolveTest, LooksInterruptedCodeUpWhereItIs) {
  for (const char* entry :
       {"asm_sysvec_apic_timer_interrupt", "asm_common_interrupt",
        "asm_exc_page_fault", "asm_spurious_interrupt",
        "asm_fred_entrypoint_kernel"}) {
    const ksym::KernelTimeline timeline =
        Timeline(std::string(kTable) + "ffffffff81004000 T " + entry +
                 "\nffffffff81004100 T asm_call_irq_on_stack\n"
                 "ffffffff81004200 T _einittext\n");
    resolver_.SetKernelSymbols(timeline);
    raw_ = {};
    Sample({}, {0xffffffff81001000, 0xffffffff81004010, 0xffffffff81001000,
                0xffffffff81001000, 0xffffffff81004110, 0xffffffff81001000,
                0xffffffff81004010, 0xffffffff81001000});
    const Profile profile = Resolve();
    EXPECT_THAT(Names(profile, profile.samples[0].kernel),
                ElementsAre("second", entry, "second", "first",
                            "asm_call_irq_on_stack", "first", entry, "second"));
  }
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

// Modules are in brackets; a gap has no name.
TEST_F(ResolveTest, NamesModulesAndGaps) {
  resolver_.SetKernelSymbols(timeline_);
  Sample({}, {0xffffffffc0001004, 0xffffffff90000000});
  const Profile profile = Resolve();
  ASSERT_EQ(profile.frames.size(), 2u);
  EXPECT_EQ(profile.String(profile.frames[0].name), "module_function");
  EXPECT_EQ(profile.String(profile.frames[0].object), "[some_module]");
  EXPECT_EQ(profile.String(profile.frames[1].name), "[unknown]");
  EXPECT_EQ(profile.frames[1].reason, ksym::Unresolved::kNoSymbol);
}

// A BPF program prints without its tag, which becomes the build-id; a name
// that only looks like one stays as it is.
TEST_F(ResolveTest, SplitsTheTagOffBpfPrograms) {
  timeline_.Apply({ksym::KernelSymbolChange::Kind::kAdded,
                   ksym::Address{0xffffffffd0000000}, 0x100,
                   "bpf_prog_0123456789abcdef_my_prog", "bpf"});
  timeline_.Apply({ksym::KernelSymbolChange::Kind::kAdded,
                   ksym::Address{0xffffffffd0001000}, 0x100,
                   "bpf_prog_get_type", "bpf"});
  timeline_.Apply({ksym::KernelSymbolChange::Kind::kAdded,
                   ksym::Address{0xffffffffd0002000}, 0x100,
                   "bpf_prog_0123456789abcdef", "bpf"});
  resolver_.SetKernelSymbols(timeline_);
  Sample({}, {0xffffffffd0000010, 0xffffffffd0001010, 0xffffffffd0002010});
  const Profile profile = Resolve();
  EXPECT_THAT(Names(profile, profile.samples[0].kernel),
              ElementsAre("bpf_prog_my_prog", "bpf_prog_get_type",
                          "bpf_prog_0123456789abcdef"));
  EXPECT_EQ(profile.String(profile.frames[0].build_id), "0123456789abcdef");
  EXPECT_EQ(profile.String(profile.frames[0].object), "[bpf]");
  EXPECT_EQ(profile.frames[0].kind, &kBpfFrame);
}

// Two programs at one place within the interval: no name, and why.
TEST_F(ResolveTest, ExplainsAnAmbiguousAddress) {
  for (const char* name : {"bpf_prog_a", "bpf_prog_b"}) {
    timeline_.Apply({ksym::KernelSymbolChange::Kind::kAdded,
                     ksym::Address{0xffffffffd0000000}, 0x100, name, "bpf"});
  }
  resolver_.SetKernelSymbols(timeline_);
  Sample({}, {0xffffffffd0000010});
  const Profile profile = Resolve();
  EXPECT_EQ(profile.String(profile.frames[0].name), "[unknown]");
  EXPECT_EQ(profile.frames[0].reason, ksym::Unresolved::kAmbiguous);
}

// A waiting thread's stack is followed by a divider and by who ended the wait:
// its command, its user's frames and the kernel's up to what woke it.
TEST_F(ResolveTest, NamesWakers) {
  const ksym::KernelTimeline timeline = Timeline(
      "ffffffff81000000 T try_to_wake_up\n"
      "ffffffff81001000 T wake_up_q\n"
      "ffffffff81002000 T pipe_read\n"
      "ffffffff81003000 T hrtimer_wakeup\n");
  resolver_.SetKernelSymbols(timeline);
  raw_.images[self_] = {.id = self_, .mappings = {}};
  const StackId waking = AddStack({0xffffffff81000001, 0xffffffff81001001});
  raw_.wakers[20] = {.process = self_,
                     .comm = "writer",
                     .user_stack = AddStack({0x3000, 0x1001}),
                     .kernel_stack = waking};
  raw_.wakers[21] = {
      .is_interrupt = true,
      .comm = "",
      .kernel_stack = AddStack({0xffffffff81000001, 0xffffffff81003001})};
  const RawFrame read = {.value = 0xffffffff81002001};
  const auto kernel_names = [&](WakerId id) {
    raw_.samples.clear();
    Sample({}, {});
    raw_.samples[0].kernel_stack = AddMixedStack(
        {read, {.kind = kWaker, .value = id}, {.kind = kWaitReason}});
    TrampolineNames user;
    ProfileBuilder builder;
    resolver_.Add(raw_, user, builder);
    const Profile profile = std::move(builder).Finish(CaptureMetadata());
    std::vector<std::string> names =
        Names(profile, profile.samples.at(0).kernel);
    std::ranges::reverse(names);
    return names;
  };
  const std::string reason = "[blocked: kernel thread]";
  EXPECT_THAT(kernel_names(20),
              ElementsAre(reason, "pipe_read", "--", "writer",
                          "py::f:/srv/app.py", "loop", "wake_up_q"));
  EXPECT_THAT(kernel_names(21), ElementsAre(reason, "pipe_read", "--",
                                            "[woken by interrupt: timer]"));
  for (const WakerId unknown : {WakerId{0}, WakerId{99}}) {
    EXPECT_THAT(kernel_names(unknown),
                ElementsAre(reason, "pipe_read", "--", "[waker unknown]"));
  }
  // A thread can call itself as the marks are called.
  for (const std::string mark : {"--", "[waker unknown]"}) {
    raw_.wakers[20].comm = mark;
    EXPECT_EQ(kernel_names(20).at(3), "_" + mark.substr(1));
  }
  raw_.wakers[20].comm = "writer";
  // A file can say that a waker has a waker, and that this is itself.
  raw_.wakers[20].kernel_stack = AddMixedStack(
      {read, {.kind = kWaker, .value = 20}, {.kind = kWaitReason}});
  EXPECT_THAT(kernel_names(20),
              ElementsAre(reason, "pipe_read", "--", "writer",
                          "py::f:/srv/app.py", "loop", reason, "pipe_read"));
}

// A waiting thread has one stack at one place, be it sampled in the scheduler,
// with the frames of what sampled it, or walked while it slept, for which the
// kernel leaves the scheduler's functions out. Who holds what it wants stays.
TEST_F(ResolveTest, EndsWaitsAtWhatCalledTheScheduler) {
  const ksym::KernelTimeline timeline = Timeline(
      "ffffffff81000000 T bpf_trampoline\n"
      "ffffffff81001000 T __schedule\n"
      "ffffffff81002000 T schedule\n"
      "ffffffff81003000 T schedule_timeout\n"
      "ffffffff81004000 T wait_for_completion\n"
      "ffffffff81005000 T kernel_wait4\n");
  resolver_.SetKernelSymbols(timeline);
  const auto names_of = [&](const std::vector<uint64_t>& functions) {
    std::vector<RawFrame> frames;
    for (const uint64_t function : functions) {
      frames.push_back({.value = 0xffffffff81000001 + function * 0x1000});
    }
    frames.push_back({.kind = kWaitReason});
    raw_.samples.clear();
    Sample({}, {});
    raw_.samples[0].kernel_stack = AddMixedStack(frames);
    const Profile profile = Resolve();
    std::vector<std::string> names =
        Names(profile, profile.samples.at(0).kernel);
    names.pop_back();  // the reason
    return names;
  };
  EXPECT_THAT(names_of({0, 1, 2, 3, 5}), ElementsAre("kernel_wait4"));
  EXPECT_THAT(names_of({1, 2, 5}), ElementsAre("kernel_wait4"));
  EXPECT_THAT(names_of({2, 5}), ElementsAre("kernel_wait4"));
  EXPECT_THAT(names_of({5}), ElementsAre("kernel_wait4"));
  EXPECT_THAT(names_of({0, 1, 2, 4, 5}),
              ElementsAre("wait_for_completion", "kernel_wait4"));
  // Not at the leaf, and so no part of it.
  EXPECT_THAT(names_of({1, 5, 2}), ElementsAre("kernel_wait4", "schedule"));
  EXPECT_THAT(names_of({5, 2, 1}), ElementsAre());
}

// Without symbols every kernel frame is the kernel.
TEST_F(ResolveTest, FoldsAHiddenKernel) {
  resolver_.SetNoKernelSymbols(ksym::Unresolved::kNoPermission);
  Sample({}, {0xffffffff81001000, 0xffffffff81000500});
  const Profile profile = Resolve();
  EXPECT_THAT(Names(profile, profile.samples[0].kernel),
              ElementsAre("[kernel]", "[kernel]"));
  EXPECT_EQ(profile.frames[0].reason, ksym::Unresolved::kNoPermission);
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
