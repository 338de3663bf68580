// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace profd {

// Whether a request's Host may lead here: an address, "localhost" or this
// machine's name, with or without a port. A web page of anybody can let its own
// name lead to any address, and would read what is there as if it were its own;
// its name is in the request then.
bool IsHostOfThisMachine(std::string_view host, std::string_view machine);

}  // namespace profd
