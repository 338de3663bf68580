// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "daemon/history/part_adder.h"
#include "daemon/profile/profile.h"

namespace profd::history {

inline constexpr uint64_t kSecond = 1'000'000'000;
inline constexpr uint64_t kFirstPart = 1'795'572'780 * kSecond;

// A part of one second: stacks in a service, in Python and in the kernel. It
// differs with its number in what is common and in what is rare.
inline Profile PartNumber(unsigned number, uint64_t rate = 19) {
  ProfileBuilder builder;
  const auto frame = [&](const std::string& name, const FrameKind* kind,
                         const std::string& object) {
    return builder.AddFrame({.name = builder.Intern(name),
                             .object = builder.Intern(object),
                             .build_id = builder.Intern("00ff"),
                             .kind = kind});
  };
  const FrameId main = frame("main", &kUserFrame, "/usr/sbin/nginx");
  const FrameId serve = frame("serve", &kUserFrame, "/usr/sbin/nginx");
  const FrameId rare =
      frame("rare_" + std::to_string(number), &kUserFrame, "/usr/sbin/nginx");
  const FrameId read = frame("vfs_read", &kKernelFrame, "[kernel]");
  const FrameId python =
      builder.AddFrame({.name = builder.Intern("view"),
                        .kind = &kPythonFrame,
                        .file = builder.Intern("/srv/app.py"),
                        .line = 40 + number,
                        .function = builder.Intern("App.view"),
                        .first_line = 33});
  const CallStackId kernel = builder.AddStack(std::vector{read});
  const StringId nginx = builder.Intern("/system.slice/nginx.service");
  builder.AddSample({.comm = builder.Intern("nginx"),
                     .pid = 100,
                     .cgroup = nginx,
                     .user_state = StackState::kWhole,
                     .kernel_state = StackState::kWhole,
                     .user = builder.AddStack(std::vector{serve, main}),
                     .kernel = kernel,
                     .count = 10});
  builder.AddSample({.comm = builder.Intern("nginx"),
                     .pid = 100,
                     .cgroup = nginx,
                     .user_state = StackState::kTruncated,
                     .user = builder.AddStack(std::vector{rare, main}),
                     .count = 2});
  builder.AddSample({.comm = builder.Intern("python3"),
                     .pid = 200 + number,
                     .user_state = StackState::kWhole,
                     .user = builder.AddStack(std::vector{python, main}),
                     .count = 3});
  builder.Add({.taken = 16,
               .emitted = 15,
               .lost_by_cause = {0, 1, 0},
               .damaged_by_cause = {0, 0, 2, 0}});
  CaptureMetadata metadata;
  metadata.version = "test";
  metadata.hostname = "host";
  metadata.kinds = {EventKind("cpu-clock", rate, 0)};
  metadata.cpus = "0-1";
  metadata.start_unix_ns = kFirstPart + number * kSecond;
  metadata.duration_ns = kSecond;
  return std::move(builder).Finish(std::move(metadata));
}

inline Tables TablesOf(const std::vector<Profile>& parts,
                       const std::string& run = "r") {
  PartAdder adder;
  for (const Profile& part : parts) {
    EXPECT_TRUE(adder.Add(part, {.boot = "b", .name = run}));
  }
  return std::move(adder.tables());
}

// A directory that is gone with it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = testing::TempDir() + "history.XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace profd::history
