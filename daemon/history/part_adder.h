// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "daemon/history/table_builder.h"
#include "daemon/history/tables.h"
#include "daemon/profile/profile.h"

namespace profd::history {

// What is the same in all parts of one run of the service.
struct Run {
  std::string boot;  // the kernel's boot id
  std::string name;  // one text for each run
};

// Puts profiles of a second or so into tables. Frames become functions: where
// in a function, in a line or an inlined call the code was is not kept, nor are
// addresses. Not thread-safe.
class PartAdder {
 public:
  // False, and nothing was added: one file does not take it beside what is
  // there. O(strings, frames, stacks and samples of the part).
  bool Add(const Profile& part, const Run& run);
  bool empty() const { return builder_.tables().parts.empty(); }
  Tables& tables() { return builder_.tables(); }
  const Tables& tables() const { return builder_.tables(); }
  // About what it takes.
  size_t memory_bytes() const { return builder_.memory_bytes(); }

 private:
  class Part;

  uint32_t AddSetting(const CaptureMetadata& metadata, const Run& run);
  void AddCounters(const Accounting& accounting);
  bool HasRoomFor(const Profile& part) const;

  TableBuilder builder_;
  uint64_t stack_steps_ = 0;  // see kMaxStackSteps
};

}  // namespace profd::history
