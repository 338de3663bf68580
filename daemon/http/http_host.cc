// SPDX-License-Identifier: Apache-2.0
#include "daemon/http/http_host.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "ksym/base/text.h"

namespace profd {
namespace {

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool IsSameName(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, Lower, Lower);
}

bool IsAddress(int family, std::string_view text) {
  in6_addr address = {};  // the larger one
  return ::inet_pton(family, std::string(text).c_str(), &address) == 1;
}

bool IsPortOrNothing(std::string_view text) {
  return text.empty() ||
         (text.starts_with(':') &&
          ksym::ParseUnsigned<uint16_t>(text.substr(1), 10).has_value());
}

}  // namespace

bool IsHostOfThisMachine(std::string_view host, std::string_view machine) {
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    return end != std::string_view::npos &&
           IsAddress(AF_INET6, host.substr(1, end - 1)) &&
           IsPortOrNothing(host.substr(end + 1));
  }
  const size_t colon = std::min(host.find(':'), host.size());
  const std::string_view name = host.substr(0, colon);
  return IsPortOrNothing(host.substr(colon)) &&
         (IsAddress(AF_INET, name) || IsSameName(name, "localhost") ||
          (!machine.empty() && IsSameName(name, machine)));
}

}  // namespace profd
