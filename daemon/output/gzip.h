// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace profd {

// The bytes as one gzip member (RFC 1952), without name and time, so that
// equal bytes give equal results. Memory: the result and 256 KiB.
std::string Gzip(std::string_view bytes);

}  // namespace profd
