// SPDX-License-Identifier: Apache-2.0
#include "ksym/markup/markup_reporter.h"

#include <algorithm>
#include <functional>

namespace ksym {

void MarkupReporter::Error(std::string_view message, std::string_view place) {
  ((out_ += "error: ") += message) += '\n';
  ShowPlace(place);
}

void MarkupReporter::Warning(std::string_view message, std::string_view place) {
  ((out_ += "warning: ") += message) += '\n';
  ShowPlace(place);
}

void MarkupReporter::Message(std::string_view message) {
  (out_ += message) += '\n';
}

void MarkupReporter::ShowPlace(std::string_view place) {
  // The order of pointers into different objects.
  const std::less<const char*> before;
  const char* const begin = line_.data();
  const char* const start_of_place = place.data();
  if (before(start_of_place, begin) ||
      before(begin + line_.size(), start_of_place)) {
    return;
  }
  auto at = static_cast<size_t>(start_of_place - begin);
  std::string_view shown = line_;
  if (line_.size() > kMaxShownBytes) {
    const size_t start = at - std::min(at, kMaxShownBytes / 2);
    shown = line_.substr(start, kMaxShownBytes);
    at -= start;
  }
  out_ += shown;
  if (!shown.ends_with('\n')) out_ += '\n';
  out_.append(at, ' ');
  out_ += "^\n";
}

}  // namespace ksym
