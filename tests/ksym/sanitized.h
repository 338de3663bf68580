// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace ksym {

// Whether this program has a sanitizer, with which everything takes up to 20
// times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif
#else
inline constexpr bool kIsSanitized = false;
#endif

// Whether all of a file is too much to compare with what another tool says of
// it. With a sanitizer that takes half a minute for some megabytes.
inline bool IsTooLargeToCompare(const std::string& path) {
  constexpr uintmax_t kMaxSanitizedBytes = 1 << 20;
  return kIsSanitized && std::filesystem::file_size(path) > kMaxSanitizedBytes;
}

}  // namespace ksym
