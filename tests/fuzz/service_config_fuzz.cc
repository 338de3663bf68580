// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/service/config.h"

// Any bytes are a configuration, or an error that begins with its place; and
// what is accepted is within each key's range.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto config = profd::ParseConfig(text, "f");
  if (!config) {
    if (!config.error().message().starts_with("f:")) std::abort();
    return 0;
  }
  for (const profd::ConfigKey& key : profd::ConfigKeys()) {
    const auto* number = std::get_if<profd::ConfigKey::Number>(&key.kind);
    if (number == nullptr) continue;
    const uint64_t value = number->value(*config);
    if (value < number->least || value > number->most) std::abort();
  }
  return 0;
}
