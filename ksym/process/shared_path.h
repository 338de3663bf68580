// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ksym/base/keyed_hash.h"

namespace ksym {

// The path of a mapped file: text that never changes and that all copies share,
// as one process's mappings are copied in many places and its paths can have
// 4 KiB each. Empty without memory of its own. Copies may be used by different
// threads.
class SharedPath {
 public:
  // Implicit, so that it is used as a text is. NOLINTBEGIN(*-explicit-*)
  SharedPath() = default;
  SharedPath(std::string text)
      : text_(text.empty()
                  ? nullptr
                  : std::make_shared<const std::string>(std::move(text))) {}
  SharedPath(std::string_view text) : SharedPath(std::string(text)) {}
  SharedPath(const char* text) : SharedPath(std::string(text)) {}
  operator const std::string&() const { return str(); }
  operator std::string_view() const { return str(); }
  // NOLINTEND(*-explicit-*)

  const std::string& str() const {
    static const std::string kEmpty;
    return text_ == nullptr ? kEmpty : *text_;
  }
  bool empty() const { return text_ == nullptr; }
  size_t size() const { return str().size(); }
  bool starts_with(std::string_view text) const {
    return str().starts_with(text);
  }
  bool starts_with(char c) const { return str().starts_with(c); }
  bool ends_with(std::string_view text) const { return str().ends_with(text); }

  // Whether both are one text in memory, or empty.
  bool IsSharedWith(const SharedPath& other) const {
    return text_ == other.text_;
  }
  // Whether no other copy is there, in any thread.
  bool IsOnly() const { return text_.use_count() == 1; }

  friend bool operator==(const SharedPath& a, const SharedPath& b) {
    return a.IsSharedWith(b) || a.str() == b.str();
  }
  template <typename Text>
    requires std::convertible_to<const Text&, std::string_view>
  friend bool operator==(const SharedPath& a, const Text& b) {
    return std::string_view(a.str()) == std::string_view(b);
  }

 private:
  std::shared_ptr<const std::string> text_;  // null: empty
};

// Makes equal paths share their text, and knows how much all of them take. Not
// thread-safe.
class PathPool {
 public:
  // The pool's copy if it has one, which costs nothing more.
  const SharedPath* Find(const SharedPath& path) const {
    const auto found = paths_.find(path.str());
    return found == paths_.end() ? nullptr : &found->second;
  }
  // The path must not be there yet and not be empty.
  void Add(const SharedPath& path) {
    if (paths_.emplace(path.str(), path).second) bytes_ += path.size();
  }
  // Forgets those that nobody else has. O(paths).
  void Sweep() {
    std::erase_if(paths_, [this](const auto& entry) {
      if (!entry.second.IsOnly()) return false;
      bytes_ -= entry.second.size();
      return true;
    });
  }
  // The sum over all that were added and not forgotten.
  size_t bytes() const { return bytes_; }

 private:
  // Keys are views of the values' texts.
  std::unordered_map<std::string_view, SharedPath, TextHash> paths_;
  size_t bytes_ = 0;
};

}  // namespace ksym
