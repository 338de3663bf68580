// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ksym {

// Sentences about what others wrote, of which anybody could cause any number:
// so many are kept in all, and the last one says that there are more.
class WarningList {
 public:
  static constexpr size_t kMax = 20;

  void Add(std::string text) {
    if (++count_ < kMax) fresh_.push_back(std::move(text));
    if (count_ == kMax) {
      fresh_.emplace_back("more files were not used, or not all of them");
    }
  }
  // Those since the last call.
  std::vector<std::string> Take() { return std::exchange(fresh_, {}); }

 private:
  size_t count_ = 0;
  std::vector<std::string> fresh_;
};

}  // namespace ksym
