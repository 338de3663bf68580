// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd {

// Reads the JSON document that ksym-profile writes (docs/formats.md). kInvalid
// for other JSON, naming the place, as in "stacks[3].user[7]". Memory: some 20
// times the text.
ksym::Result<Profile> ReadJson(std::string_view text);

}  // namespace profd
