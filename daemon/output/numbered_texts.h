// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ksym/base/keyed_hash.h"

namespace profd {

// The table of strings of a protocol buffer: numbered in the order of first
// use; the empty text is 0.
class NumberedTexts {
 public:
  NumberedTexts() { Id(""); }
  int64_t Id(std::string_view text) {
    const auto [at, is_new] = ids_.try_emplace(std::string(text), ids_.size());
    if (is_new) texts_.push_back(at->first);
    return static_cast<int64_t>(at->second);
  }
  // Valid as long as this.
  const std::vector<std::string_view>& texts() const { return texts_; }

 private:
  std::unordered_map<std::string, size_t, ksym::TextHash> ids_;
  std::vector<std::string_view> texts_;
};

}  // namespace profd
