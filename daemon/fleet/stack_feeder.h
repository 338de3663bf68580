// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "daemon/fleet/answers.h"
#include "daemon/history/tables.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd::fleet {

// Gives sums of stacks to the adders of a history (FlameAdder and its like), as
// tables of so many stacks as are kept in memory at once. Not thread-safe.
class StackFeeder {
 public:
  static constexpr size_t kMaxBatchStacks = 8192;
  static constexpr size_t kMaxBatchFrames = size_t{1} << 18;

  using Sink = std::function<ksym::Status(const history::Tables&)>;
  struct Terms {
    SampleKind kind;
    uint64_t from_unix_ns = 0;
    uint64_t known_ns = 0;  // of the whole time
  };
  StackFeeder(Terms terms, Sink sink)
      : terms_(std::move(terms)), sink_(std::move(sink)) {}

  // `frames`: from the root, as the database has them. Fails as the sink does.
  ksym::Status Add(const StackSum& sum, std::span<const StackFrame> frames);
  // The same of a sum of whose stack nothing is shown but this.
  ksym::Status AddUnshown(const StackSum& sum);
  // Gives what is left, and of no stack the time alone.
  ksym::Status Finish();

 private:
  FrameId FrameOf(const StackFrame& frame);
  ksym::Status Flush();

  const Terms terms_;
  const Sink sink_;
  ProfileBuilder builder_;
  Accounting accounting_;  // of what is in builder_
  size_t stacks_ = 0;
  size_t frames_ = 0;
  bool has_flushed_ = false;
};

}  // namespace profd::fleet
