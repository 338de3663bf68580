// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ksym/markup/markup_parser.h"

namespace ksym {

enum class MarkupColor : uint8_t { kOff, kOn };

// Appends what a filter prints, in colors if asked for: what stands in place
// of an element is blue (cyan in blue text) and the values in it are green,
// with the log's own color and weight again behind it. The sequences are those
// of llvm-symbolizer. Not thread-safe.
class MarkupPrinter {
 public:
  MarkupPrinter(MarkupColor color, std::string& out)
      : color_(color), out_(out) {}

  void Text(std::string_view text) { out_ += text; }
  // Between Highlight() and Restore().
  void Value(std::string_view text);
  void Number(uint64_t value);
  void Hex(uint64_t value);
  void Highlight();
  void Restore();

  // False: the text is no control sequence of the log. In colors off they are
  // dropped.
  bool TryControlSequence(std::string_view text);
  // Back to the default, at the end of a line.
  void ResetState();
  bool in_default_state() const { return foreground_ == 0 && !bold_; }

  // An element that cannot be put into words: [[[tag:field]]].
  void RawElement(const MarkupNode& element);

 private:
  void SetForeground(char digit);

  const MarkupColor color_;
  std::string& out_;
  char foreground_ = 0;  // '0' to '7', the digit of its sequence; 0: default
  bool bold_ = false;
};

}  // namespace ksym
