// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ksym/base/result.h"

namespace profd {

// What the gzip file holds, all its members. kCorrupt with the offset where it
// ends being one, kLimit when there is more than `max_bytes`.
ksym::Result<std::string> Gunzip(std::string_view bytes, size_t max_bytes);

}  // namespace profd
