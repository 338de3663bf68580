// SPDX-License-Identifier: Apache-2.0
#include "daemon/http/http_token.h"

#include <cstddef>

namespace profd {

bool IsToken(std::string_view given, std::string_view wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned>(given[i] ^ wanted[i % wanted.size()]);
  }
  return difference == 0;
}

}  // namespace profd
