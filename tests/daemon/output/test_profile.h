// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "daemon/profile/profile.h"

namespace profd {

// Builds profiles out of names for the tests of the writers.
class TestProfile {
 public:
  ProfileBuilder& builder() { return builder_; }

  FrameId User(std::string_view name, std::string_view module = "/bin/app",
               ksym::Unresolved reason = ksym::Unresolved::kNone);
  // With a place in the source, and the body of one within another.
  FrameId Placed(std::string_view name, std::string_view file, uint32_t line);
  FrameId Inlined(std::string_view name, std::string_view file, uint32_t line);
  FrameId Kernel(std::string_view name, std::string_view module = "[kernel]");

  struct Sample {
    std::string_view comm = "app";
    uint32_t pid = 7;
    uint32_t tid = 0;
    std::string_view cgroup = {};
    std::vector<FrameId> user = {};  // leaf first; whole unless empty
    std::vector<FrameId> kernel = {};
    StackState user_state = StackState::kNone;  // overrides when set
    StackState kernel_state = StackState::kNone;
    SampleKindId kind = 0;
    uint64_t count = 1;
    uint64_t value = 0;
    LabelSet labels = {};
  };
  void Add(const Sample& sample);

  Profile Finish() &&;

 private:
  ProfileBuilder builder_;
};

// A profile with a bit of everything. `seed` changes the order in which
// strings, frames and samples come, and nothing else.
Profile ExampleProfile(uint32_t seed);

}  // namespace profd
