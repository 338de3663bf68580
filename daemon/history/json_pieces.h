// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace profd::history {

// What answers in JSON are made of.

// Seconds with three decimals.
std::string SecondsText(uint64_t ns);

// A text in quotation marks; see AppendJsonText().
void AppendText(std::string_view text, std::string& out);

// A list, each element as `append` writes it.
template <typename List, typename Append>
void AppendList(const List& list, const Append& append, std::string& out) {
  out += '[';
  bool is_first = true;
  for (const auto& element : list) {
    if (!std::exchange(is_first, false)) out += ',';
    append(element);
  }
  out += ']';
}

}  // namespace profd::history
