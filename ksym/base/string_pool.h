// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ksym/base/keyed_hash.h"

namespace ksym {

// Each different text once, never moved and never freed before the pool is:
// views stay valid while it lives. About 50 bytes per text beside its own.
class StringPool {
 public:
  // `max_bytes` bounds the texts' own bytes.
  explicit StringPool(size_t max_bytes) : max_bytes_(max_bytes) {}
  StringPool(const StringPool&) = delete;
  StringPool& operator=(const StringPool&) = delete;

  // The pool's copy; nothing when a new text would exceed the bound.
  std::optional<std::string_view> Intern(std::string_view text) {
    if (text.empty()) return std::string_view();
    const auto found = texts_.find(text);
    if (found != texts_.end()) return *found;
    if (text.size() > max_bytes_ - bytes_) return std::nullopt;
    char* copy = Allocate(text.size());
    std::memcpy(copy, text.data(), text.size());
    bytes_ += text.size();
    return *texts_.emplace(copy, text.size()).first;
  }

  size_t size() const { return texts_.size(); }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kBlockBytes = size_t{32} << 10;

  char* Allocate(size_t size) {
    if (size > left_) {
      left_ = std::max(size, kBlockBytes);
      blocks_.push_back(std::make_unique_for_overwrite<char[]>(left_));
      next_ = blocks_.back().get();
    }
    left_ -= size;
    char* place = next_;
    next_ += size;
    return place;
  }

  size_t max_bytes_;
  size_t bytes_ = 0;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  size_t left_ = 0;
  std::unordered_set<std::string_view, TextHash> texts_;
};

}  // namespace ksym
