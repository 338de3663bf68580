// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/output/test_profile.h"

#include <algorithm>
#include <functional>
#include <random>
#include <utility>

namespace profd {

FrameId TestProfile::User(std::string_view name, std::string_view module,
                          ksym::Unresolved reason) {
  return builder_.AddFrame(
      {.name = builder_.Intern(name),
       .object = builder_.Intern(module),
       .build_id = builder_.Intern(module.empty() ? "" : "0123456789abcdef"),
       .kind = module.empty() && reason == ksym::Unresolved::kNone
                   ? &kJitFrame
                   : &kUserFrame,
       .reason = reason,
       .address = 0x55d0c0de0000 + name.size(),
       .file_offset = 0x1000 + name.size(),
       .symbol_offset = 0x10});
}

FrameId TestProfile::Placed(std::string_view name, std::string_view file,
                            uint32_t line) {
  return builder_.AddFrame({.name = builder_.Intern(name),
                            .object = builder_.Intern("/bin/app"),
                            .file_offset = 0x2000,
                            .symbol_offset = 0x10,
                            .file = builder_.Intern(file),
                            .line = line});
}

FrameId TestProfile::Inlined(std::string_view name, std::string_view file,
                             uint32_t line) {
  return builder_.AddFrame({.name = builder_.Intern(name),
                            .object = builder_.Intern("/bin/app"),
                            .kind = &kInlinedFrame,
                            .file_offset = 0x2000,
                            .symbol_offset = 0x4,
                            .file = builder_.Intern(file),
                            .line = line});
}

FrameId TestProfile::Kernel(std::string_view name, std::string_view module) {
  return builder_.AddFrame({.name = builder_.Intern(name),
                            .object = builder_.Intern(module),
                            .kind = KernelKindOf(module),
                            .address = 0xffffffff81000000 + name.size(),
                            .symbol_offset = 0x20});
}

void TestProfile::Add(const Sample& sample) {
  const auto state = [](StackState given, const std::vector<FrameId>& frames) {
    if (given != StackState::kNone) return given;
    return frames.empty() ? StackState::kNone : StackState::kWhole;
  };
  builder_.AddSample({.comm = builder_.Intern(sample.comm),
                      .pid = sample.pid,
                      .tid = sample.tid,
                      .cgroup = builder_.Intern(sample.cgroup),
                      .labels = builder_.AddLabels(sample.labels),
                      .user_state = state(sample.user_state, sample.user),
                      .kernel_state = state(sample.kernel_state, sample.kernel),
                      .kind = sample.kind,
                      .user = builder_.AddStack(sample.user),
                      .kernel = builder_.AddStack(sample.kernel),
                      .count = sample.count,
                      .value = sample.value});
}

Profile TestProfile::Finish() && {
  CaptureMetadata metadata;
  metadata.version = "0.1.0";
  metadata.kinds = {EventKind("cpu-clock", 99, 0)};
  metadata.start_unix_ns = 1700000000123456789;
  metadata.duration_ns = 10000000000;
  metadata.hostname = "host";
  metadata.kernel_release = "6.1.0";
  metadata.architecture = "x86_64";
  metadata.cpus = "0-3";
  metadata.stack_store = "exact";
  metadata.max_stack_depth = 127;
  metadata.warnings = {"kernel symbols are hidden \"here\""};
  metadata.kernel_table = {.snapshots = 2,
                           .changes = 7,
                           .symbols = 122153,
                           .bytes = 572000,
                           .reading_ns = 90000000};
  metadata.unwind_tables = {.processes = 3,
                            .files = 11,
                            .bytes = 217384,
                            .building_ns = 4300000,
                            .median_delay_ns = 33000000,
                            .longest_delay_ns = 147000000,
                            .stacks_copied = 14};
  return std::move(builder_).Finish(std::move(metadata));
}

Profile ExampleProfile(uint32_t seed) {
  TestProfile p;
  using Step = std::function<void()>;
  const auto spin = [&p] {
    return std::vector{p.User("spin"), p.User("main")};
  };
  const auto read = [&p] {
    return std::vector{p.Kernel("vfs_read"), p.Kernel("do_syscall_64")};
  };
  std::vector<Step> steps = {
      [&] { p.Add({.tid = 8, .user = spin(), .count = 90}); },
      [&] { p.Add({.tid = 9, .user = spin(), .kernel = read(), .count = 5}); },
      [&] { p.Add({.pid = 70, .user = spin(), .count = 2}); },
      [&] {
        p.Add({.comm = "ext4;worker 1",
               .pid = 12,
               .kernel = {p.Kernel("ext4_write", "[ext4]")},
               .count = 3});
      },
      [&] {
        p.Add({.user = {p.User("[libx.so.1]", "/usr/lib/libx.so.1",
                               ksym::Unresolved::kNoSymbols),
                        p.User("[unknown]", "", ksym::Unresolved::kAnonymous)},
               .user_state = StackState::kTruncated,
               .count = 4});
      },
      [&] { p.Add({.kernel = read(), .user_state = StackState::kFaulted}); },
      [&] { p.Add({.user = spin(), .kernel_state = StackState::kCollided}); },
      [&] { p.Add({.comm = "swapper", .pid = 0, .count = 6}); },
      [&] {
        p.builder().Add(Accounting{.taken = 120,
                                   .emitted = 112,
                                   .lost_by_cause = {5, 3, 0},
                                   .damaged_by_cause = {1, 1, 4},
                                   .processes = {7, 8, 9},
                                   .time_enabled_ns = 40000000000,
                                   .time_running_ns = 39000000000});
      }};
  std::mt19937 random(seed);
  std::ranges::shuffle(steps, random);
  for (const Step& step : steps) step();
  return std::move(p).Finish();
}

}  // namespace profd
