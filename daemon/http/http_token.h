// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ksym/base/result.h"

namespace profd {

// Whether a request's Authorization is the wanted one, "Bearer TOKEN", without
// telling by the time it takes where the first wrong byte is.
bool IsToken(std::string_view given, std::string_view wanted);

// A token that nobody guesses: 64 hexadecimal digits.
ksym::Result<std::string> MakeToken();

}  // namespace profd
