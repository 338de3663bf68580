// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

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

// Larger files are compared with what other tools say of them without a
// sanitizer only, which takes half a minute for each.
inline constexpr size_t kMaxSanitizedBytes = size_t{1} << 20;

}  // namespace ksym
