// SPDX-License-Identifier: Apache-2.0
#include "daemon/http/http_token.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace profd {

bool IsToken(std::string_view given, std::string_view wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned>(given[i] ^ wanted[i % wanted.size()]);
  }
  return difference == 0;
}

ksym::Result<std::string> MakeToken() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<unsigned char, 32> bytes = {};
  if (::getrandom(bytes.data(), bytes.size(), 0) !=
      static_cast<ssize_t>(bytes.size())) {
    return ksym::FailErrno(errno, "getrandom");
  }
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kDigits[byte >> 4];
    token += kDigits[byte & 0xf];
  }
  return token;
}

}  // namespace profd
