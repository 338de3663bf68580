// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace profd {

// The runtimes whose own frames are taken.
enum class Runtimes : uint8_t {
  kAuto,  // all that are known; needs unwind tables
  kNone,
  kPython,
  kNode,
  kJava,
};
// By the word that options and the service's settings have for them; nothing:
// it is none.
std::optional<Runtimes> ParseRuntimes(std::string_view word);

}  // namespace profd
