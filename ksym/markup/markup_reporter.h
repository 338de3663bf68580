// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ksym {

// What is wrong with a log, as text for a person: the message, the line of the
// log and a caret under the place:
//   error: expected address; found '2'
//   at {{{pc:2}}} it stopped
//            ^
class MarkupReporter {
 public:
  // A longer line is cut to the part around the place.
  static constexpr size_t kMaxShownBytes = 4096;

  explicit MarkupReporter(std::string& out) : out_(out) {}

  // The line that places lie in; `line` must live while it is reported on.
  void BeginLine(std::string_view line) { line_ = line; }

  // `place`: a part of the line, whose start is shown; of others only the
  // message is.
  void Error(std::string_view message, std::string_view place);
  void Warning(std::string_view message, std::string_view place);
  // A message that is about no place.
  void Message(std::string_view message);

 private:
  void ShowPlace(std::string_view place);

  std::string& out_;
  std::string_view line_;
};

}  // namespace ksym
