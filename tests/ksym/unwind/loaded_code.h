// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ksym/unwind/stack_walk.h"

namespace ksym {

// The code of this process when the object is made, and its tables. A forked
// child has the same.
class LoadedCode {
 public:
  LoadedCode();

  CodeAt Find(Address address) const;
  // Objects whose table could not be made.
  int failures() const { return failures_; }

 private:
  struct Range {
    uint64_t start = 0;
    uint64_t end = 0;
    uint64_t load_bias = 0;
    std::shared_ptr<const UnwindTable> table;
  };
  std::vector<Range> ranges_;
  int failures_ = 0;
};

}  // namespace ksym
