// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ksym {

// Names in profiles have at most so many bytes: whoever names a function or a
// file decides about the memory of all who read of it. What compilers make of
// templates is longer now and then, and nobody reads it to its end.
inline constexpr size_t kMaxShownBytes = 1024;

// A name that is longer becomes its beginning, cut between two characters of
// UTF-8, an ellipsis, '#', and 16 hexadecimal digits of the SHA-256 of the
// whole: names that differ anywhere stay different. Exactly or a few bytes
// below kMaxShownBytes. A view of `name` or of `room`.
std::string_view BoundName(std::string_view name, std::string& room);

// The same of a path, whose end tells more: "/", an ellipsis, '#' and the
// digits stand for its beginning, and then come the last of its directories.
std::string_view BoundPath(std::string_view path, std::string& room);

}  // namespace ksym
