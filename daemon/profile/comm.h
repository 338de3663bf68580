// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace profd {

// The name of a thread as the kernel has it, the `comm` of task_struct
// (TASK_COMM_LEN of include/linux/sched.h): at most 15 bytes, any but NUL. Lies
// in place, as a capture has one per sample. Value.
class Comm {
 public:
  static constexpr size_t kMaxBytes = 15;

  constexpr Comm() = default;
  // Takes `text` up to its first NUL; what is longer is cut off.
  explicit Comm(std::string_view text) {
    text = text.substr(0, std::min(text.find('\0'), kMaxBytes));
    text.copy(bytes_.data(), text.size());
  }

  // Valid as long as this object.
  std::string_view view() const {
    return {bytes_.data(), ::strnlen(bytes_.data(), kMaxBytes)};
  }

  friend bool operator==(const Comm&, const Comm&) = default;
  // By bytes without a sign, as texts are.
  friend std::strong_ordering operator<=>(const Comm& a, const Comm& b) {
    return a.view() <=> b.view();
  }

 private:
  std::array<char, kMaxBytes + 1> bytes_ = {};  // the rest is NUL
};

}  // namespace profd
