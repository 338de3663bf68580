// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/naming/resolve.h"
#include "ksym/base/file.h"
#include "ksym/kernel/kallsyms_reader.h"
#include "ksym/process/process_image.h"

namespace profd {

inline constexpr std::string_view kTable =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T first\n"
    "ffffffff81001000 T second\n"
    "ffffffff81002000 T _etext\n"
    "ffffffffc0001000 t module_function\t[some_module]\n";

inline ksym::KernelTimeline Timeline(std::string_view table = kTable) {
  const ksym::UniqueFd fd(::memfd_create("kallsyms", MFD_CLOEXEC));
  EXPECT_TRUE(ksym::WriteAll(fd.get(), table));
  ::lseek(fd.get(), 0, SEEK_SET);
  auto map = ksym::LoadKallsyms(fd.get());
  EXPECT_TRUE(map) << map.error().message();
  return ksym::KernelTimeline(ksym::KernelSymbolSource(std::move(*map)));
}

// Resolves one raw profile, whose process is this one.
class ResolveFixture : public testing::Test {
 protected:
  // Adds a sample of this process.
  void Sample(std::vector<uint64_t> user, std::vector<uint64_t> kernel) {
    RawSample sample;
    sample.process = self_;
    sample.comm = Comm("test");
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

}  // namespace profd
