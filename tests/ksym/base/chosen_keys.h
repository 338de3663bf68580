// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace ksym {

// Keys as somebody chooses who wants a table to be slow, and how long one is.

// The inverse of an odd number modulo 2^64.
constexpr uint64_t InverseOf(uint64_t odd) {
  uint64_t inverse = odd;
  for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

// Texts of 16 bytes that are one to libstdc++'s std::hash, which is
// MurmurHash64A with a known seed: for each first half, the second half that
// leads to the same hash is computed backwards.
inline std::vector<std::string> TextsOfOneHash(size_t count) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  constexpr uint64_t kInverse = InverseOf(kMultiplier);
  constexpr uint64_t kBegin = 0xc70f6907 ^ 16 * kMultiplier;
  constexpr uint64_t kEnd = 0x1234567890abcdef;
  const auto shift = [](uint64_t value) { return value ^ value >> 47; };
  std::vector<std::string> texts;
  for (uint64_t i = 1; texts.size() < count; ++i) {
    const uint64_t first = i * 0x9e3779b97f4a7c15;
    const uint64_t hash =
        (kBegin ^ shift(first * kMultiplier) * kMultiplier) * kMultiplier;
    const uint64_t second =
        shift((hash ^ kEnd * kInverse) * kInverse) * kInverse;
    std::string text(16, '\0');
    std::memcpy(text.data(), &first, sizeof(first));
    std::memcpy(text.data() + sizeof(first), &second, sizeof(second));
    if (text.find('\0') == std::string::npos) texts.push_back(text);
  }
  return texts;
}

// As many texts of that size that nobody chose.
inline std::vector<std::string> OrdinaryTexts(size_t count) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    texts.push_back("function" + std::string(8 - number.size(), '_') + number);
  }
  return texts;
}

// Numbers that share one bucket of a table that uses them as they are.
inline std::vector<uint64_t> NumbersOfOneBucket(size_t count) {
  std::unordered_set<uint64_t> table;
  for (uint64_t i = 0; i < count; ++i) table.insert(i);
  std::vector<uint64_t> numbers;
  for (uint64_t i = 1; i <= count; ++i) {
    numbers.push_back(i * table.bucket_count());
  }
  return numbers;
}

// How much longer `run` takes with the keys that were chosen, in CPU time, the
// least of several. Where each look-up goes past all that came before it, that
// is some hundred times for 20,000 of them.
constexpr size_t kChosenKeys = 20'000;
constexpr double kMostTimesLonger = 30;

template <typename Run, typename Keys>
double TimesLonger(const Run& run, const Keys& ordinary, const Keys& chosen) {
  const auto seconds = [&](const Keys& keys) {
    const auto now = [] {
      timespec time = {};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) +
             1e-9 * static_cast<double>(time.tv_nsec);
    };
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) {
      const double begin = now();
      run(keys);
      least = std::min(least, now() - begin);
    }
    return least;
  };
  const double usual = seconds(ordinary);
  return seconds(chosen) / usual;
}

}  // namespace ksym
