// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace profd {

// Finds out which interrupt a kernel stack is of, by the symbols of its frames,
// leaf first.
class InterruptName {
 public:
  // False: the others are not the interrupt's, or are not needed.
  bool Add(std::string_view symbol);
  // "timer", "net_rx", "block", ..., or the function that handles it; empty:
  // nothing tells.
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::string callee_;  // the frame before
};

}  // namespace profd
