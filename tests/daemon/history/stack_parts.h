// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/history/tables.h"
#include "daemon/profile/profile.h"
#include "tests/daemon/history/sample_parts.h"

namespace profd::history {

// Parts of stacks that are texts, and what tables have of each stack.

// "main;serve": the callers first, as in folded stacks.
struct TextSample {
  std::string user;
  std::string kernel = {};
  uint64_t count = 1;
  uint64_t value = 0;
  SampleKindId kind = 0;
  std::string comm = "app";
};

inline std::vector<std::string> SplitStack(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    names.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

// A profile of one second. Kind 0 is of the CPU; those of waits are 1 and 2.
inline Profile PartOf(unsigned number, const std::vector<TextSample>& samples,
                      uint64_t rate = 19) {
  ProfileBuilder builder;
  const auto stack = [&](const std::string& text, const FrameKind& kind) {
    std::vector<FrameId> frames;
    for (const std::string& name : SplitStack(text)) {
      frames.insert(frames.begin(),
                    builder.AddFrame({.name = builder.Intern(name),
                                      .object = builder.Intern("of " + name),
                                      .kind = &kind}));
    }
    return builder.AddStack(frames);
  };
  uint64_t count = 0;
  for (const TextSample& sample : samples) {
    builder.AddSample({.comm = builder.Intern(sample.comm),
                       .pid = 7,
                       .cgroup = builder.Intern("/system.slice/a.service"),
                       .user_state = StackState::kWhole,
                       .kernel_state = StackState::kWhole,
                       .kind = sample.kind,
                       .user = stack(sample.user, kUserFrame),
                       .kernel = stack(sample.kernel, kKernelFrame),
                       .count = sample.count,
                       .value = sample.value});
    count += sample.count;
  }
  builder.Add({.taken = count, .emitted = count});
  CaptureMetadata metadata;
  metadata.kinds = {EventKind("cpu-clock", rate, 0)};
  for (SampleKind& kind : WaitKinds("waits", rate)) {
    metadata.kinds.push_back(std::move(kind));
  }
  metadata.start_unix_ns = kFirstPart + number * kSecond;
  metadata.duration_ns = kSecond;
  return std::move(builder).Finish(std::move(metadata));
}

// Count and value.
using SumOfSamples = std::pair<uint64_t, uint64_t>;
using SumsByText = std::map<std::string, SumOfSamples>;

inline void AddTo(SumOfSamples& sum, const Row& row) {
  sum.first += row.count;
  sum.second += row.value;
}

inline std::string StackText(const Tables& tables, uint32_t node) {
  std::string text;
  for (; node != 0; node = tables.nodes[node].parent) {
    const Function& function = tables.functions[tables.nodes[node].function];
    text = std::string(tables.strings.Get(function.name)) +
           (text.empty() ? "" : ";") + text;
  }
  return text;
}

// What ends in each stack, "user | kernel", in all of its series and parts.
inline SumsByText SumsOfStacks(const Tables& tables) {
  SumsByText sums;
  for (const Row& row : tables.rows) {
    AddTo(sums[StackText(tables, row.user) + " | " +
               StackText(tables, row.kernel)],
          row);
  }
  return sums;
}

}  // namespace profd::history
